"""Views and unique visitors of one page, of one object, or of the whole site."""

from datetime import date, datetime
from typing import Literal, Self

from redis_kit.core import conf, connections
from redis_kit.core.errors import InvalidName, InvalidValue, PermissionDenied, PoolExhausted
from redis_kit.core.flow import Flow, operation, twin
from redis_kit.core.primitive import Primitive
from redis_kit.core.values.numbers import whole_number
from redis_kit.pageviews import keys, periods
from redis_kit.pageviews.batch import count_one
from redis_kit.pageviews.pages import SITE, Key, encoded
from redis_kit.pageviews.questions import numbers
from redis_kit.pageviews.questions.values import Day, Hour, Overlap, Trend, Visitors
from redis_kit.pageviews.settings import PageViewSettings
from redis_kit.pageviews.tally import Event, identified

MAX_TOP, MAX_SOURCES = 1000, 100
Period = Literal["day", "week", "month"]


class PageViews(Primitive):
    """The views and visitors of a page by its name, or of one object of it by its key.

    Views are counted one by one. Visitors are estimated, with a standard error of 0.81 % (HyperLogLog, Flajolet et al.
    2007). Days are in Django's ``TIME_ZONE``. A range includes both ends and has at most 366 days; its default is
    today. Reading costs one round trip, and returns 0 while Redis is unavailable unless the policy is ``raise``.
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
        if on_failure not in ("open", "raise", None):
            raise InvalidValue(f"on_failure must be open, raise or None, not {on_failure!r}.")
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

    @operation(if_open=0)
    def views(self, start: date | None = None, end: date | None = None) -> Flow[int]:
        """Return the number of views. Raises InvalidValue for a wrong range."""
        return numbers.views(self.encoded, periods.days(start, end))

    @operation(if_open=Visitors(0))
    def visitors(self, start: date | None = None, end: date | None = None) -> Flow[Visitors]:
        """Return the number of unique visitors: the union of all days, with an ``error`` of 0.81 %.

        It is not ``distinct`` if a visitor may count more than once, as with ``VISITOR = "daily_salt"`` in a range of
        several days. 90 days are read from at most 16 sketches. Raises InvalidValue for a wrong range.
        """
        return numbers.visitors(self.encoded, periods.days(start, end))

    def by_day(self, start: date | None = None, end: date | None = None) -> list[Day]:
        """Return views, visitors and requests of bots of each day, including days without any.

        Raises InvalidValue for a wrong range.
        """
        days = periods.days(start, end)
        return self.run_flow(numbers.by_day(self.encoded, days), if_open=[Day(day, 0, 0) for day in days])

    async def aby_day(self, start: date | None = None, end: date | None = None) -> list[Day]:
        """See by_day()."""
        days = periods.days(start, end)
        return await self.arun_flow(numbers.by_day(self.encoded, days), if_open=[Day(day, 0, 0) for day in days])

    @operation(if_open=[Hour(hour, 0, 0) for hour in range(24)])
    def by_hour(self, day: date | None = None) -> Flow[list[Hour]]:
        """Return views and visitors in each of the 24 hours of a day. Hours are stored for ``HOUR_RETENTION``."""
        return numbers.by_hour(self.encoded, periods.checked("day", day))

    @operation(if_open=[])
    def top(self, n: int = 10, day: date | None = None, *, period: Period = "day") -> Flow[list[tuple[str, int]]]:
        """Return the ``n`` most viewed pages of the site, or keys of a page's objects, with their views.

        They are those of a day, or of the ISO week or the month that it is in. Raises InvalidValue unless ``n`` is from
        1 to 1000.
        """
        whole_number("n", n, (1, MAX_TOP))
        return numbers.top(self.encoded, periods.period_of(periods.checked("day", day), period), n)

    @operation(if_open=[])
    def trending(self, n: int = 10) -> Flow[list[Trend]]:
        """Return the ``n`` pages or keys with the most views lately: a view counts half after 6 hours.

        At most 1000 are compared. Raises InvalidValue unless ``n`` is from 1 to 1000.
        """
        return numbers.trending(self.encoded, whole_number("n", n, (1, MAX_TOP)))

    @operation(if_open=[])
    def referrers(self, n: int = 10, day: date | None = None) -> Flow[list[tuple[str, int]]]:
        """Return the ``n`` hosts that most views of a day came from.

        100 hosts are stored for each day. If there were more, each with over a hundredth of the views is among them,
        and numbers may be too high. Raises InvalidValue unless ``n`` is from 1 to 100.
        """
        key = keys.referrers(self.encoded, periods.checked("day", day))
        return numbers.sources(key, whole_number("n", n, (1, MAX_SOURCES)))

    @operation(if_open=[])
    def campaigns(self, n: int = 10, day: date | None = None) -> Flow[list[tuple[str, int]]]:
        """Return the ``n`` campaigns that brought most views of a day, with the limits of referrers()."""
        key = keys.campaigns(self.encoded, periods.checked("day", day))
        return numbers.sources(key, whole_number("n", n, (1, MAX_SOURCES)))

    @operation(if_open=0)
    def online(self) -> Flow[int]:
        """Return the number of visitors in the last five minutes: in the present minute and the five before it."""
        return numbers.online(self.encoded)

    @operation(if_open=Overlap(0, 0, 0, 0, 0, True))
    def overlap(self, other: "PageViews", start: date | None = None, end: date | None = None) -> Flow[Overlap]:
        """Return the visitors that both pages had, with the error of that number. In a Cluster two round trips.

        Raises InvalidValue for a wrong range, and for a page that is counted on another connection.
        """
        days = periods.days(start, end)
        if not isinstance(other, PageViews) or other.using != self.using:
            raise InvalidValue(f"other must be PageViews on the connection {self.using!r}, not {other!r}.")
        is_cluster = connections.client(self.using).is_cluster
        return numbers.overlap(self.encoded, other.encoded, days, is_cluster=is_cluster)

    @operation(if_open=False)
    def add(
        self, visitor: str = "", *, at: datetime | None = None, referrer: str = "", campaign: str = ""
    ) -> Flow[bool]:
        """Count one view now, for the object, its page and the site; return False if Redis did not count it.

        The visitor's identity is stored only as a keyed hash in HyperLogLogs; without one only the view counts. One
        round trip, and two for the first view of a page or object on a day in a process. Raises InvalidValue for a
        datetime without a time zone if ``USE_TZ`` is on, and for one after today.
        """
        if self.name == SITE:
            raise InvalidName(f"The views of {SITE} are the sum of its pages; count those.")
        for name, text in (("referrer", referrer), ("campaign", campaign)):
            if not isinstance(text, str):
                raise InvalidValue(f"{name} must be text, not {text!r}.")
        key = "" if self.object_key is None else str(self.object_key)
        event = Event(periods.local(at), self.name, key, identified(visitor), referrer, campaign)
        return not (yield from count_one(event, using=self.using))

    aviews = twin(views)
    avisitors = twin(visitors)
    aby_hour = twin(by_hour)
    atop = twin(top)
    atrending = twin(trending)
    areferrers = twin(referrers)
    acampaigns = twin(campaigns)
    aonline = twin(online)
    aoverlap = twin(overlap)
    aadd = twin(add)
