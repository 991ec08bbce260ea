"""Views and visitors in a range of days, as flows. A name is that of a page, of an object or of the site, encoded."""

import math
import time
from collections.abc import Iterable
from datetime import date, timedelta
from typing import Any
from urllib.parse import unquote

from redis_kit.core import conf, scripts
from redis_kit.core.flow import Flow, single
from redis_kit.core.gather import gather
from redis_kit.core.steps import Batch, Call
from redis_kit.pageviews import keys, periods
from redis_kit.pageviews.pages import SITE
from redis_kit.pageviews.questions.values import STANDARD_ERROR, Day, Hour, Overlap, Trend, Visitors
from redis_kit.pageviews.settings import PageViewSettings
from redis_kit.pageviews.tally import identity_kind

SALTED = "daily_salt"
COUNT_EACH = scripts.load("redis_kit.pageviews", "count_each")
LEAST_TREND = 0.01  # views; what weighs less is not listed
UNION = scripts.load("redis_kit.pageviews", "union")
MINUTES = 6  # the present one, and the five before


def views(name: str, days: list[date]) -> Flow[int]:
    """Return the number of views on some days."""
    replies = yield Batch(_by_month(name, days))
    return sum(_numbers(replies))


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


def by_hour(name: str, day: date) -> Flow[list[Hour]]:
    """Return the views and visitors in each hour of a day."""
    hours = range(24)
    sketches = COUNT_EACH([keys.visitors(name, f"{day}T{hour:02}") for hour in hours])
    views_by_hour, counts = yield Batch([_hours(name, day), sketches])
    return [Hour(*row) for row in zip(hours, _numbers([views_by_hour]), counts, strict=True)]


def hours_of_days(name: str, days: list[date]) -> Flow[list[list[int]]]:
    """Return the views in the 24 hours of each of some days."""
    replies = yield Batch([_hours(name, day) for day in days])
    return [_numbers([reply]) for reply in replies]


def closed(name: str, period: str, days: list[date]) -> Flow[tuple[int, int, int]]:
    """Return the views, the visitors and the requests of bots of one day, week or month."""
    months = [*_by_month(name, days), *_by_month(name, days, keys.BOTS)]
    count, *replies = yield Batch([Call("PFCOUNT", keys.visitors(name, period)), *months])
    split = len(months) // 2
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


def _union_with(name: str, days: list[date], other: bytes) -> scripts.ScriptCall:
    return UNION([keys.union(name), *_sketches(name, days)], [other])


def _sketches(name: str, days: list[date]) -> list[str]:
    return [keys.visitors(name, period) for period in periods.sketches(days)]
