"""Periods that are over, copied from Redis into the project's database, and read together with those in Redis."""

from collections.abc import Iterator
from datetime import date, timedelta
from itertools import count
from typing import Any, NamedTuple

from asgiref.sync import sync_to_async
from django.db import router, transaction

from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow
from redis_kit.core.gather import gather
from redis_kit.core.values.numbers import whole_number
from redis_kit.core.values.sequences import batched
from redis_kit.pageviews import periods
from redis_kit.pageviews.counter import Day, PageViews, closed, distinct, members
from redis_kit.pageviews.database.models import PageViewSnapshot, digest_of
from redis_kit.pageviews.pages import SITE

CHUNK = 200  # names or rows at once
MAX_DAYS = 400
FIGURES = ("views", "visitors", "bots")


class SnapshotResult(NamedTuple):
    """How many rows snapshot() created, how many it raised, and how many were right already.

    Two that run at the same moment both count the rows that one of them creates.
    """

    created: int
    updated: int
    unchanged: int


class ClosedPeriod(NamedTuple):
    """A day, a week or a month that is over: its kind, its name in keys, and its days."""

    kind: str
    name: str
    days: list[date]


def snapshot(*, days: int = 3, using: str | None = None) -> SnapshotResult:
    """Copy the days, weeks and months that ended in the last ``days`` days: the site, all pages and all objects.

    Repeat it at will, and at the same time: a number in the database never becomes smaller, so a snapshot after Redis
    lost data changes nothing. Takes a few round trips and SQL statements for every 200 pages or objects of a period.
    Raises RedisUnavailable, and InvalidValue unless ``days`` is from 1 to 400.
    """
    whole_number("days", days, (1, MAX_DAYS))
    site = PageViews.site(using=using, on_failure="raise")
    results = [
        _store(period, names, site)
        for period in closed_periods(periods.now().date(), days)
        for names in batched(_names(period, site), CHUNK)
    ]
    return SnapshotResult(*map(sum, zip(*results, strict=True)))


async def asnapshot(*, days: int = 3, using: str | None = None) -> SnapshotResult:
    """See snapshot(). Runs in Django's thread for synchronous code, as each of its asynchronous queries does."""
    return await sync_to_async(snapshot)(days=days, using=using)


def history(views: PageViews, start: date | None = None, end: date | None = None) -> list[Day]:
    """Return each day like ``PageViews.by_day()``, with the numbers of snapshots for what Redis no longer has.

    Of a day that both have, the higher numbers count. One round trip and one SQL query.
    """
    return merged(_checked(views).by_day(start, end), rows_of([views.encoded], periods.days(start, end)))


async def ahistory(views: PageViews, start: date | None = None, end: date | None = None) -> list[Day]:
    """See history()."""
    days = await _checked(views).aby_day(start, end)
    return merged(days, [row async for row in rows_of([views.encoded], periods.days(start, end))])


def _checked(views: PageViews) -> PageViews:
    if not isinstance(views, PageViews):
        raise InvalidValue(f"views must be PageViews, not {views!r}.")
    return views


def rows_of(names: list[str], days: list[date]) -> Any:
    """Return the query for the snapshots of some days, of pages by their encoded names."""
    return PageViewSnapshot.objects.filter(
        digest__in=list(map(digest_of, names)), period="day", start__gte=days[0], start__lte=days[-1]
    )


def merged(days: list[Day], rows: Any) -> list[Day]:
    """Return the days of one page with the higher numbers of Redis and of its snapshots."""
    stored = {row.start: row for row in rows}
    return [
        Day(day.day, max(day.views, row.views), max(day.visitors, row.visitors), max(day.bots, row.bots))
        if (row := stored.get(day.day))
        else day
        for day in days
    ]


def closed_periods(today: date, days: int) -> Iterator[ClosedPeriod]:
    """Yield the days, weeks and months that ended in the days before today, the latest first."""
    for ago in range(1, days + 1):
        last = today - timedelta(ago)
        yield ClosedPeriod("day", last.isoformat(), [last])
        if last.weekday() == 6:
            yield ClosedPeriod("week", periods.week_of(last), periods.days(last - timedelta(6), last))
        if (last + timedelta(1)).day == 1:
            yield ClosedPeriod("month", periods.month_of(last), periods.days(last.replace(day=1), last))


def _names(period: ClosedPeriod, site: PageViews) -> Iterator[str]:
    """Yield the encoded names that have views in a period: the site, pages, and their objects."""
    yield SITE
    for pages in _listed(SITE, period, site):
        yield from pages
        keys_of_pages = site.run_flow(gather([members(page, period.name, CHUNK) for page in pages]))
        for page, first in zip(pages, keys_of_pages, strict=True):
            yield from (f"{page}:{key}" for key, _ in first)
            if len(first) == CHUNK:
                yield from (f"{page}:{key}" for keys in _listed(page, period, site, start=CHUNK) for key in keys)


def _listed(name: str, period: ClosedPeriod, site: PageViews, *, start: int = 0) -> Iterator[list[str]]:
    for place in count(start, CHUNK):
        names = [member for member, _ in site.run_flow(members(name, period.name, CHUNK, start=place))]
        if names:
            yield names
        if len(names) < CHUNK:
            return


def _store(period: ClosedPeriod, names: list[str], site: PageViews) -> SnapshotResult:
    flows: list[Flow[Any]] = [closed(name, period.name, period.days) for name in names]
    is_distinct, *figures = site.run_flow(gather([distinct(period.days), *flows]))
    rows = [_row(period, name, *counted, distinct=is_distinct) for name, counted in zip(names, figures, strict=True)]
    own = PageViewSnapshot.objects.filter(period=period.kind, start=period.days[0])
    with transaction.atomic(using=router.db_for_write(PageViewSnapshot)):
        stored = {row.digest: row for row in own.filter(digest__in=[row.digest for row in rows])}
        new = [row for row in rows if row.digest not in stored and row.views + row.bots]
        grown = [stored[row.digest] for row in rows if row.digest in stored and _raise(stored[row.digest], row)]
        PageViewSnapshot.objects.bulk_create(new, ignore_conflicts=True)  # another process may do the same
        PageViewSnapshot.objects.bulk_update(grown, (*FIGURES, "distinct"))
    return SnapshotResult(len(new), len(grown), len(stored) - len(grown))


def _row(period: ClosedPeriod, name: str, views: int, visitors: int, bots: int, *, distinct: bool) -> PageViewSnapshot:
    page, _, key = name.partition(":")
    row = PageViewSnapshot(period=period.kind, start=period.days[0], digest=digest_of(name), page=page, key=key)
    row.views, row.visitors, row.distinct, row.bots = views, visitors, distinct, bots
    return row


def _raise(stored: PageViewSnapshot, now: PageViewSnapshot) -> bool:
    """Raise the figures of a stored row to those of now, and return whether one was lower.

    Whether visitors are distinct is that of the higher figure of visitors.
    """
    higher = [name for name in FIGURES if getattr(now, name) > getattr(stored, name)]
    if now.visitors >= stored.visitors and now.distinct != stored.distinct:
        higher.append("distinct")
    for name in higher:
        setattr(stored, name, getattr(now, name))
    return bool(higher)
