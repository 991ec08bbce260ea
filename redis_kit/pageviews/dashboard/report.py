"""The numbers behind the dashboard's page about page views, in one round trip for each page that it shows."""

from datetime import date, timedelta
from typing import Any, NamedTuple

from django.db import DatabaseError, router, transaction

from redis_kit.core import conf, connections
from redis_kit.core.flow import Flow
from redis_kit.core.gather import gather
from redis_kit.pageviews import keys, periods
from redis_kit.pageviews.counter import PageViews
from redis_kit.pageviews.database.history import merged, rows_of
from redis_kit.pageviews.database.models import PageViewSnapshot, digest_of
from redis_kit.pageviews.questions import numbers
from redis_kit.pageviews.questions.values import Day, Overlap, Trend, Visitors
from redis_kit.pageviews.settings import PageViewSettings

DAYS = 28  # of a chart, and as many before
WEEK = 7
LISTED = 20  # pages
SOURCES = 10


class Report(NamedTuple):
    """The numbers of a page, of an object or of the site. ``visitors`` are None if nobody knows who came again."""

    days: list[Day]  # of the chart, and as many before
    visitors: Visitors | None
    hours: list[tuple[date, list[int]]]
    online: int
    top: list[tuple[str, int]]
    trends: list[Trend]
    referrers: list[tuple[str, int]]
    campaigns: list[tuple[str, int]]
    dropped: list[int]
    is_whole: bool = True  # Redis has the visitors of all days of the chart

    @property
    def last(self) -> list[Day]:
        """Return the days of the chart."""
        return self.days[DAYS:]

    @property
    def before(self) -> list[Day]:
        """Return as many days before."""
        return self.days[:DAYS]

    def total(self, field: str) -> int:
        """Return the sum of views or of requests of bots on all days of the chart."""
        return sum(getattr(day, field) for day in self.last)


def read(page: PageViews) -> Report:
    """Return the report of a page, of an object or of the site. One round trip and one SQL query."""
    days = _days()
    report: Report = page.run_flow(_report(page.encoded, days))
    return _with_snapshots([page], [report], days)[0]


def compare(first: PageViews, second: PageViews) -> tuple[Report, Report, Overlap | None]:
    """Return the reports of two pages and their common visitors, or None if Redis no longer has all of their days.

    One round trip, or two in a Cluster, and one query.
    """
    days, is_cluster = _days(), connections.client(first.using).is_cluster
    flows: list[Flow[Any]] = [
        _report(first.encoded, days),
        _report(second.encoded, days),
        numbers.overlap(first.encoded, second.encoded, days[DAYS:], is_cluster=is_cluster),
    ]
    *reports, overlap = first.run_flow(gather(flows))
    of_first, of_second = _with_snapshots([first, second], reports, days)
    return of_first, of_second, overlap if of_first.is_whole and of_second.is_whole else None


def _days() -> list[date]:
    today = periods.now().date()
    return periods.days(today - timedelta(2 * DAYS - 1), today)


def _report(name: str, days: list[date]) -> Flow[Report]:
    last, today = days[DAYS:], days[-1]
    # The heat map adds up whole weeks that are stored by hour, at most as many as the chart has.
    weeks = int(conf.section(PageViewSettings).HOUR_RETENTION // (WEEK * 86_400))
    hour_days = days[-min(max(weeks, 1) * WEEK, DAYS) :]
    flows: list[Flow[Any]] = [
        numbers.by_day(name, days),
        numbers.visitors(name, last),
        numbers.hours_of_days(name, hour_days),
        numbers.online(name),
        numbers.top(name, today.isoformat(), LISTED),
        numbers.trending(name, LISTED),
        numbers.sources(keys.referrers(name, today), SOURCES),
        numbers.sources(keys.campaigns(name, today), SOURCES),
        numbers.dropped(last),
    ]
    by_day, visitors, hours, *others = yield from gather(flows)
    return Report(by_day, visitors, list(zip(hour_days, hours, strict=True)), *others)


def _with_snapshots(pages: list[PageViews], reports: list[Report], days: list[date]) -> list[Report]:
    """Return the reports with the days that only the database has. Without its table they stay as they are."""
    try:
        with transaction.atomic(using=router.db_for_read(PageViewSnapshot)):
            rows = list(rows_of([page.encoded for page in pages], days))
    except DatabaseError:
        return reports
    return [
        _with_rows(report, [row for row in rows if row.digest == digest_of(page.encoded)])
        for page, report in zip(pages, reports, strict=True)
    ]


def _with_rows(report: Report, rows: list[PageViewSnapshot]) -> Report:
    """Return a report with the days of snapshots.

    If each day has its own identities, the visitors of the range are the sum of the days. Else only sketches tell who
    came again, and those of a day that Redis lacks are lost.
    """
    full = report._replace(days=merged(report.days, rows))
    has_more = any(day.visitors > known.visitors for day, known in zip(full.last, report.last, strict=True))
    if full.visitors is None or not has_more:
        return full
    visitors = None if full.visitors.distinct else Visitors(full.total("visitors"), distinct=False)
    return full._replace(visitors=visitors, is_whole=False)
