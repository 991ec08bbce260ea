"""Views and unique visitors of one page, of one object, or of the whole site."""

from datetime import date, datetime
from typing import Literal, NamedTuple, Self
from urllib.parse import unquote

from redis_kit.core import conf
from redis_kit.core.errors import InvalidName, InvalidValue, PermissionDenied, PoolExhausted
from redis_kit.core.flow import Flow
from redis_kit.core.primitive import Primitive
from redis_kit.core.steps import Batch, Call
from redis_kit.pageviews import keys, periods
from redis_kit.pageviews.batch import Event, ViewBatch, identified
from redis_kit.pageviews.pages import SITE, Key, encoded
from redis_kit.pageviews.settings import PageViewSettings

MAX_TOP = 1000


class Visitors(int):
    """A number of visitors; not ``distinct`` if a visitor counts once for each day."""

    distinct: bool

    def __new__(cls, count: int, *, distinct: bool = True) -> Self:
        """Return the number with its attribute."""
        made = super().__new__(cls, count)
        made.distinct = distinct
        return made


class Day(NamedTuple):
    """The views and visitors of a page on one day."""

    day: date
    views: int
    visitors: int


class PageViews(Primitive):
    """The views and visitors of a page by its name, or of one object of it by its key.

    Views are exact. Visitors are an estimate with a standard error of 0.81 % (HyperLogLog, Flajolet et al. 2007).
    Days are in Django's ``TIME_ZONE``. A range includes both ends and has at most 366 days; the default is today.
    Reading costs one round trip, and returns 0 while Redis is unavailable unless the policy is ``raise``.
    """

    component, settings = "pageviews", PageViewSettings
    answered = (PoolExhausted, PermissionDenied)

    def __init__(
        self,
        page: str,
        key: Key | None = None,
        *,
        using: str | None = None,
        on_failure: Literal["open", "raise"] | None = None,
    ) -> None:
        super().__init__(page, using=using or conf.section(PageViewSettings).USING)
        self.encoded = encoded(page, key)
        self.object_key = key
        self.on_failure = on_failure

    @classmethod
    def site(cls, *, using: str | None = None, on_failure: Literal["open", "raise"] | None = None) -> Self:
        """Return the views and visitors of all pages together."""
        return cls(SITE, using=using, on_failure=on_failure)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.encoded!r}>"

    def policy(self) -> str:
        """Return the policy for when Redis is unavailable."""
        return self.on_failure or super().policy()

    def views(self, start: date | None = None, end: date | None = None) -> int:
        """Return the number of views. Raises InvalidValue for a wrong range."""
        return self.run_flow(self._views(periods.days(start, end)), if_open=0)

    async def aviews(self, start: date | None = None, end: date | None = None) -> int:
        """See views()."""
        return await self.arun_flow(self._views(periods.days(start, end)), if_open=0)

    def visitors(self, start: date | None = None, end: date | None = None) -> Visitors:
        """Return the number of unique visitors.

        With ``VISITOR = "daily_salt"`` a visitor has a new identity each day. A range of several days then counts a
        visitor once for each day, and the result's ``distinct`` is False. Raises InvalidValue for a wrong range.
        """
        return self.run_flow(self._visitors(periods.days(start, end)), if_open=Visitors(0))

    async def avisitors(self, start: date | None = None, end: date | None = None) -> Visitors:
        """See visitors()."""
        return await self.arun_flow(self._visitors(periods.days(start, end)), if_open=Visitors(0))

    def by_day(self, start: date | None = None, end: date | None = None) -> list[Day]:
        """Return views and visitors of each day, including days without any. Raises InvalidValue for a wrong range."""
        days = periods.days(start, end)
        return self.run_flow(self._by_day(days), if_open=[Day(day, 0, 0) for day in days])

    async def aby_day(self, start: date | None = None, end: date | None = None) -> list[Day]:
        """See by_day()."""
        days = periods.days(start, end)
        return await self.arun_flow(self._by_day(days), if_open=[Day(day, 0, 0) for day in days])

    def by_hour(self, day: date | None = None) -> list[int]:
        """Return the views in each of the 24 hours of a day. Hours are stored for ``HOUR_RETENTION``."""
        return self.run_flow(self._by_hour(periods.checked("day", day)), if_open=[0] * 24)

    async def aby_hour(self, day: date | None = None) -> list[int]:
        """See by_hour()."""
        return await self.arun_flow(self._by_hour(periods.checked("day", day)), if_open=[0] * 24)

    def top(self, n: int = 10, day: date | None = None) -> list[tuple[str, int]]:
        """Return the ``n`` most viewed pages of the site, or keys of a page's objects, with their views on a day.

        Raises InvalidValue unless ``n`` is from 1 to 1000.
        """
        return self.run_flow(self._top(_number(n), periods.checked("day", day)), if_open=[])

    async def atop(self, n: int = 10, day: date | None = None) -> list[tuple[str, int]]:
        """See top()."""
        return await self.arun_flow(self._top(_number(n), periods.checked("day", day)), if_open=[])

    def add(self, visitor: str = "", *, at: datetime | None = None) -> bool:
        """Count one view now, for the object, its page and the site; return False if Redis did not count it.

        The visitor's identity is stored only as a keyed hash in HyperLogLogs; without one only the view counts. Two
        round trips, one from the second time on in a process. Raises InvalidValue for a datetime without a time zone.
        """
        return not self.record(visitor, at=at)

    async def aadd(self, visitor: str = "", *, at: datetime | None = None) -> bool:
        """See add()."""
        return not await self.arecord(visitor, at=at)

    def record(self, visitor: str, *, at: datetime | None = None) -> str:
        """Count one view like add(); return why it was dropped, as a field of ``Dropped``, or "" if it was counted."""
        return self.run_flow(self._record(visitor, periods.local(at)), if_open="outage")

    async def arecord(self, visitor: str, *, at: datetime | None = None) -> str:
        """See record()."""
        return await self.arun_flow(self._record(visitor, periods.local(at)), if_open="outage")

    def _views(self, days: list[date]) -> Flow[int]:
        return sum((yield from self._each(days)))

    def _visitors(self, days: list[date]) -> Flow[Visitors]:
        count = yield Call("PFCOUNT", *[keys.visitors(self.encoded, period) for period in periods.sketches(days)])
        salted = conf.section(PageViewSettings).VISITOR == "daily_salt"
        return Visitors(count, distinct=len(days) == 1 or not salted)

    def _each(self, days: list[date]) -> Flow[list[int]]:
        replies = yield Batch(self._month_calls(days))
        return [int(count or 0) for month in replies for count in month]

    def _by_day(self, days: list[date]) -> Flow[list[Day]]:
        months = self._month_calls(days)
        replies = yield Batch([*months, *(Call("PFCOUNT", keys.visitors(self.encoded, day)) for day in days)])
        views = [int(count or 0) for month in replies[: len(months)] for count in month]
        return [Day(*row) for row in zip(days, views, replies[len(months) :], strict=True)]

    def _month_calls(self, days: list[date]) -> list[Call]:
        months = periods.months(days).items()
        return [Call("HMGET", keys.views(self.encoded, month), *[day.day for day in part]) for month, part in months]

    def _by_hour(self, day: date) -> Flow[list[int]]:
        counts = yield Call("HMGET", keys.views(self.encoded, day), *range(24))
        return [int(count or 0) for count in counts]

    def _top(self, n: int, day: date) -> Flow[list[tuple[str, int]]]:
        pairs = yield Call("ZRANGE", keys.top(self.encoded, day), 0, n - 1, "REV", "WITHSCORES")
        names = [unquote(name.decode()) for name in pairs[::2]]
        return list(zip(names, map(int, pairs[1::2]), strict=True))

    def _record(self, visitor: str, moment: datetime) -> Flow[str]:
        if self.name == SITE:
            raise InvalidName(f"The views of {SITE} are the sum of its pages; count those.")
        key = "" if self.object_key is None else str(self.object_key)
        batch = ViewBatch([Event(moment, self.name, key, identified(visitor))], using=self.using)
        return "refused" if (yield from batch.send()) else ""


def _number(n: int) -> int:
    if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= MAX_TOP:
        raise InvalidValue(f"n is {n!r}; it must be a whole number from 1 to {MAX_TOP}.")
    return n
