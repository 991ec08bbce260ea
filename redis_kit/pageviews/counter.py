"""Views and unique visitors of one page, of one object, or of the whole site: what is asked about them.

The functions are flows for several names or several questions at once. A name is that of a page, of an object or of the
site, encoded.
"""

import math
import time
from collections.abc import Iterable
from datetime import date, datetime, timedelta
from typing import Any, Literal, NamedTuple, Self
from urllib.parse import unquote

from redis_kit.core import conf, connections, scripts
from redis_kit.core.errors import InvalidName, InvalidValue, PermissionDenied, PoolExhausted
from redis_kit.core.flow import Flow, operation, single, twin
from redis_kit.core.gather import gather
from redis_kit.core.primitive import Primitive
from redis_kit.core.steps import Batch, Call
from redis_kit.core.values.numbers import whole_number
from redis_kit.pageviews import keys, periods
from redis_kit.pageviews.batch import Event, ViewBatch, identified, identity_kind
from redis_kit.pageviews.pages import SITE, Key, encoded
from redis_kit.pageviews.settings import PageViewSettings

COUNT_EACH = scripts.load("redis_kit.pageviews", "count_each")
UNION = scripts.load("redis_kit.pageviews", "union")
SALTED = "daily_salt"
LEAST_TREND = 0.01  # views; what weighs less is not listed
MINUTES = 6  # the present one, and the five before
MAX_TOP, MAX_SOURCES = 1000, 100
STANDARD_ERROR = 0.0081  # of a HyperLogLog with the 16,384 registers that Redis has
Period = Literal["day", "week", "month"]


class Visitors(int):
    """A number of visitors. It is not ``distinct`` if a visitor may count more than once in the range.

    That is so in a range of several days with ``VISITOR = "daily_salt"``, and in a range in which ``VISITOR`` or
    ``HASH_KEY`` changed.
    """

    distinct: bool

    def __new__(cls, count: int, *, distinct: bool = True) -> Self:
        """Return the number with its attribute."""
        made = super().__new__(cls, count)
        made.distinct = distinct
        return made

    @property
    def error(self) -> int:
        """Return the standard error, 0.81 %: two of three estimates are closer than that to the true number."""
        return round(self * STANDARD_ERROR)


class Day(NamedTuple):
    """The views and visitors of a page on one day, and the number of requests of bots."""

    day: date
    views: int
    visitors: int
    bots: int = 0


class Hour(NamedTuple):
    """The views and visitors of a page in one hour, from 0 to 23."""

    hour: int
    views: int
    visitors: int


class Trend(NamedTuple):
    """A page or the key of an object, and its views: each counts half after each half-life."""

    name: str
    score: float


class Overlap(NamedTuple):
    """The visitors that two pages have in common, with the standard error of that number.

    The error follows from that of all three estimates, so it is large if few of many visitors are common. ``distinct``
    is that of ``Visitors``.
    """

    common: int
    error: int
    first: int
    second: int
    union: int
    distinct: bool


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
        return sum(_numbers((yield Batch(_by_month(self.encoded, periods.days(start, end))))))

    @operation(if_open=Visitors(0))
    def visitors(self, start: date | None = None, end: date | None = None) -> Flow[Visitors]:
        """Return the number of unique visitors: the union of all days, with an ``error`` of 0.81 %.

        It is not ``distinct`` if a visitor may count more than once, as with ``VISITOR = "daily_salt"`` in a range of
        several days. 90 days are read from at most 16 sketches. Raises InvalidValue for a wrong range.
        """
        return visitors(self.encoded, periods.days(start, end))

    def by_day(self, start: date | None = None, end: date | None = None) -> list[Day]:
        """Return views, visitors and requests of bots of each day, including days without any.

        Raises InvalidValue for a wrong range.
        """
        days = periods.days(start, end)
        return self.run_flow(by_day(self.encoded, days), if_open=[Day(day, 0, 0) for day in days])

    async def aby_day(self, start: date | None = None, end: date | None = None) -> list[Day]:
        """See by_day()."""
        days = periods.days(start, end)
        return await self.arun_flow(by_day(self.encoded, days), if_open=[Day(day, 0, 0) for day in days])

    @operation(if_open=[Hour(hour, 0, 0) for hour in range(24)])
    def by_hour(self, day: date | None = None) -> Flow[list[Hour]]:
        """Return views and visitors in each of the 24 hours of a day. Hours are stored for ``HOUR_RETENTION``."""
        day, hours = periods.checked("day", day), range(24)
        sketches = COUNT_EACH([keys.visitors(self.encoded, f"{day}T{hour:02}") for hour in hours])
        views, counts = yield Batch([_hours(self.encoded, day), sketches])
        return [Hour(*row) for row in zip(hours, _numbers([views]), counts, strict=True)]

    @operation(if_open=[])
    def top(self, n: int = 10, day: date | None = None, *, period: Period = "day") -> Flow[list[tuple[str, int]]]:
        """Return the ``n`` most viewed pages of the site, or keys of a page's objects, with their views.

        They are those of a day, or of the ISO week or the month that it is in. Raises InvalidValue unless ``n`` is from
        1 to 1000.
        """
        whole_number("n", n, (1, MAX_TOP))
        return top(self.encoded, periods.period_of(periods.checked("day", day), period), n)

    @operation(if_open=[])
    def trending(self, n: int = 10) -> Flow[list[Trend]]:
        """Return the ``n`` pages or keys with the most views lately: a view counts half after 6 hours.

        At most 1000 are compared. Raises InvalidValue unless ``n`` is from 1 to 1000.
        """
        return trending(self.encoded, whole_number("n", n, (1, MAX_TOP)))

    @operation(if_open=[])
    def referrers(self, n: int = 10, day: date | None = None) -> Flow[list[tuple[str, int]]]:
        """Return the ``n`` hosts that most views of a day came from.

        100 hosts are stored for each day. If there were more, each with over a hundredth of the views is among them,
        and numbers may be too high. Raises InvalidValue unless ``n`` is from 1 to 100.
        """
        key = keys.referrers(self.encoded, periods.checked("day", day))
        return sources(key, whole_number("n", n, (1, MAX_SOURCES)))

    @operation(if_open=[])
    def campaigns(self, n: int = 10, day: date | None = None) -> Flow[list[tuple[str, int]]]:
        """Return the ``n`` campaigns that brought most views of a day, with the limits of referrers()."""
        key = keys.campaigns(self.encoded, periods.checked("day", day))
        return sources(key, whole_number("n", n, (1, MAX_SOURCES)))

    @operation(if_open=0)
    def online(self) -> Flow[int]:
        """Return the number of visitors in the last five minutes: in the present minute and the five before it."""
        return online(self.encoded)

    @operation(if_open=Overlap(0, 0, 0, 0, 0, True))
    def overlap(self, other: "PageViews", start: date | None = None, end: date | None = None) -> Flow[Overlap]:
        """Return the visitors that both pages had, with the error of that number. In a Cluster two round trips.

        Raises InvalidValue for a wrong range, and for a page that is counted on another connection.
        """
        days = periods.days(start, end)
        if not isinstance(other, PageViews) or other.using != self.using:
            raise InvalidValue(f"other must be PageViews on the connection {self.using!r}, not {other!r}.")
        is_cluster = connections.client(self.using).is_cluster
        return overlap(self.encoded, other.encoded, days, is_cluster=is_cluster)

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
        return not (yield from ViewBatch([event], using=self.using).send())

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


def visitors(name: str, days: list[date]) -> Flow[Visitors]:
    """Return the number of visitors on the days of a range: the union of its sketches, never their sum."""
    count, *kinds = yield Batch([_union(name, days), *identities(days)])
    return Visitors(count, distinct=is_distinct(days, kinds))


def of_many(names: list[str], days: list[date]) -> Flow[list[tuple[int, Visitors]]]:
    """Return the numbers of views and of visitors of several names on the days of a range."""
    kinds = identities(days)
    calls = [call for name in names for call in (_union(name, days), *_by_month(name, days))]
    replies = yield Batch([*kinds, *calls])
    distinct, width = is_distinct(days, replies[: len(kinds)]), 1 + len(kinds)  # both have a call for each month
    figures = [replies[place : place + width] for place in range(len(kinds), len(replies), width)]
    return [(sum(_numbers(months)), Visitors(count, distinct=distinct)) for count, *months in figures]


def by_day(name: str, days: list[date]) -> Flow[list[Day]]:
    """Return what happened on each of some days."""
    months, bots = _by_month(name, days), _by_month(name, days, keys.BOTS)
    counts, *replies = yield Batch([COUNT_EACH([keys.visitors(name, day) for day in days]), *months, *bots])
    split = len(months)
    return [Day(*row) for row in zip(days, _numbers(replies[:split]), counts, _numbers(replies[split:]), strict=True)]


def hours_of_days(name: str, days: list[date]) -> Flow[list[list[int]]]:
    """Return the views in the 24 hours of each of some days."""
    replies = yield Batch([_hours(name, day) for day in days])
    return [_numbers([reply]) for reply in replies]


def closed(name: str, period: str, days: list[date]) -> Flow[tuple[int, int, int]]:
    """Return the views, the visitors and the requests of bots of one day, week or month."""
    months, bots = _by_month(name, days), _by_month(name, days, keys.BOTS)
    count, *replies = yield Batch([Call("PFCOUNT", keys.visitors(name, period)), *months, *bots])
    split = len(months)
    return sum(_numbers(replies[:split])), count, sum(_numbers(replies[split:]))


def distinct(days: list[date]) -> Flow[bool]:
    """Return whether a visitor counts once in a range of days."""
    return is_distinct(days, (yield Batch(identities(days))))


def dropped(days: list[date]) -> Flow[list[int]]:
    """Return how many views all processes dropped on each of some days."""
    return _numbers((yield Batch(_by_month(SITE, days, keys.DROPPED))))


def identities(days: list[date]) -> list[Call]:
    """Return the calls whose replies is_distinct() takes."""
    return [Call("SMEMBERS", keys.identities(SITE, month)) for month in periods.months(days)]


def is_distinct(days: list[date], replies: list[Any]) -> bool:
    """Return whether the sketches of some days hold each visitor under one identity.

    A day that says nothing about it was counted under the present settings.
    """
    kinds = set()
    for reply, inside in zip(replies, periods.months(days).values(), strict=True):
        numbers = {f"{day.day:02}" for day in inside}
        kinds |= {kind for number, _, kind in (member.decode().partition(" ") for member in reply) if number in numbers}
    kinds = kinds or {identity_kind(conf.section(PageViewSettings))}
    return len(kinds) == 1 and (len(days) == 1 or not min(kinds).startswith(SALTED))


def top(name: str, period: str, n: int) -> Flow[list[tuple[str, int]]]:
    """Return the most viewed pages or keys of a day, a week or a month."""
    return [(unquote(member), views) for member, views in (yield from members(name, period, n))]


def members(name: str, period: str, n: int, *, start: int = 0) -> Flow[list[tuple[str, int]]]:
    """Return the most viewed pages or keys of a day, a week or a month from a place on, encoded."""
    ranked = yield from _ranked(keys.top(name, period), n, start)
    return [(member.decode(), int(score)) for member, score in ranked]


def trending(name: str, n: int) -> Flow[list[Trend]]:
    """Return the pages or keys whose views, weighed by their age, are the most."""
    ranked, now = (yield from _ranked(keys.trending(name), n)), time.time()
    trends = [
        Trend(unquote(member.decode()), 2 ** min((float(score) - now) / periods.TRENDING_HALF_LIFE, 64))
        for member, score in ranked
    ]
    return [trend for trend in trends if trend.score >= LEAST_TREND]


def sources(key: str, n: int) -> Flow[list[tuple[str, int]]]:
    """Return the sources of the most views in one of the bounded lists."""
    return [(member.decode(errors="replace"), int(score)) for member, score in (yield from _ranked(key, n))]


def _ranked(key: str, n: int, start: int = 0) -> Flow[list[tuple[bytes, bytes]]]:
    reply = yield Call("ZRANGE", key, start, start + n - 1, "REV", "WITHSCORES")
    return list(zip(reply[::2], reply[1::2], strict=True))


def online(name: str) -> Flow[int]:
    """Return the number of visitors of the present minute and the five before it."""
    now = periods.now()
    minutes = [periods.minute_of(now - timedelta(minutes=ago)) for ago in range(MINUTES)]
    count: int = yield Call("PFCOUNT", *[keys.visitors(name, minute) for minute in minutes])
    return count


def overlap(first: str, second: str, days: list[date], *, is_cluster: bool) -> Flow[Overlap]:
    """Return the visitors in common: |A| + |B| - |A or B|. One round trip that writes nothing.

    In a Cluster two: it has both pages in two slots, so the sketches of one are merged and sent to the other.
    """
    if is_cluster:
        flows = [single(_union_with(second, days, b"")), single(Batch(identities(days)))]
        (_, there, sketch), kinds = yield from gather(flows)
        union, here, _ = yield _union_with(first, days, sketch)
    else:
        own, others = _sketches(first, days), _sketches(second, days)
        counts = [Call("PFCOUNT", *sketches) for sketches in (own, others, own + others)]
        here, there, union, *kinds = yield Batch([*counts, *identities(days)])
    common = min(max(here + there - union, 0), here, there)
    error = STANDARD_ERROR * math.hypot(here, there, union)
    return Overlap(common, round(error), here, there, union, is_distinct(days, kinds))


def _union(name: str, days: list[date]) -> Call:
    return Call("PFCOUNT", *_sketches(name, days))


def _hours(name: str, day: date) -> Call:
    return Call("HMGET", keys.views(name, day), *range(24))


def _by_month(name: str, days: list[date], prefix: str = "") -> list[Call]:
    return [
        Call("HMGET", keys.views(name, month), *[f"{prefix}{day.day}" for day in inside])
        for month, inside in periods.months(days).items()
    ]


def _numbers(replies: Iterable[list[Any]]) -> list[int]:
    return [int(number or 0) for reply in replies for number in reply]


def _union_with(name: str, days: list[date], other: bytes) -> scripts.ScriptCall:
    return UNION([keys.union(name), *_sketches(name, days)], [other])


def _sketches(name: str, days: list[date]) -> list[str]:
    return [keys.visitors(name, period) for period in periods.sketches(days)]
