"""Days of page views from Redis and from the snapshots together."""

from datetime import date
from typing import Any

from redis_kit.core.errors import InvalidValue
from redis_kit.pageviews import periods
from redis_kit.pageviews.counter import PageViews
from redis_kit.pageviews.database.models import PageViewSnapshot, digest_of
from redis_kit.pageviews.questions.values import Day


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
