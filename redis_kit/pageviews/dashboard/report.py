"""The numbers behind the dashboard's page about page views, in one round trip for each page that it shows."""

from datetime import date, timedelta
from typing import Any, NamedTuple

from django.db import DatabaseError, router, transaction

from redis_kit.core import conf, connections
from redis_kit.core.flow import Flow, single
from redis_kit.core.gather import gather
from redis_kit.core.steps import Call
from redis_kit.pageviews import keys, periods
from redis_kit.pageviews.counter import PageViews
from redis_kit.pageviews.database.history import merged, rows_of
from redis_kit.pageviews.database.models import PageViewSnapshot, digest_of
from redis_kit.pageviews.pages import OTHER, SITE, encoded
from redis_kit.pageviews.questions import numbers
from redis_kit.pageviews.questions.values import Day, Overlap, Trend, Visitors
from redis_kit.pageviews.settings import PageViewSettings

DAYS = 28  # of a chart, and as many before
WEEK = 7
LISTED = 20  # pages
SOURCES = 10


class Summary(NamedTuple):
    """The numbers of the site on the overview; ``hours`` are the views of the last 24."""

    today: Day
    online: int
    hours: list[int]


class Report(NamedTuple):
    """The numbers of a page, of an object or of the site. ``visitors`` are None if nobody knows who came again."""

    days: list[Day]
    before: list[Day]
    visitors: Visitors | None
    visitors_before: Visitors | None
    hours: list[tuple[date, list[int]]]
    online: int
    top: list[tuple[str, int]]
    trends: list[Trend]
    referrers: list[tuple[str, int]]
    campaigns: list[tuple[str, int]]
    beyond_limit: int
    dropped: list[int]
    is_whole: bool = True  # Redis has the visitors of all days of the chart

    @property
    def views(self) -> int:
        """Return the views of all days of the chart."""
        return sum(day.views for day in self.days)

    @property
    def views_before(self) -> int:
        """Return the views of as many days before."""
        return sum(day.views for day in self.before)

    @property
    def bots(self) -> int:
        """Return the requests of bots on all days of the chart."""
        return sum(day.bots for day in self.days)


def read_summary(site: PageViews) -> Flow[Summary]:
    """Read today's numbers of the site. One round trip."""
    now = periods.now()
    days = [now.date() - timedelta(1), now.date()]
    flows: list[Flow[Any]] = [
        numbers.by_day(site.encoded, days[1:]),
        numbers.online(site.encoded),
        numbers.hours_of_days(site.encoded, days),
    ]
    (day,), online, (yesterday, today) = yield from gather(flows)
    return Summary(day, online, [*yesterday[now.hour + 1 :], *today[: now.hour + 1]])


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
    before, last, today = days[:DAYS], days[DAYS:], days[-1]
    week = days[-_hour_days() :]
    flows: list[Flow[Any]] = [
        numbers.by_day(name, days),
        numbers.visitors(name, last),
        numbers.visitors(name, before),
        numbers.hours_of_days(name, week),
        numbers.online(name),
        numbers.top(name, today.isoformat(), LISTED),
        numbers.trending(name, LISTED),
        numbers.sources(keys.referrers(name, today), SOURCES),
        numbers.sources(keys.campaigns(name, today), SOURCES),
        _beyond_limit(name, today),
        numbers.dropped(last),
    ]
    each, visitors, visitors_before, hours, *others = yield from gather(flows)
    return Report(each[DAYS:], each[:DAYS], visitors, visitors_before, list(zip(week, hours, strict=True)), *others)


def _beyond_limit(name: str, today: date) -> Flow[int]:
    """Return the views of today that count under ``(other)`` if that is for a lack of room, else 0."""
    other = encoded(OTHER) if name == SITE else f"{name}:{encoded(OTHER)}"
    flows = [numbers.views(other, [today]), single(Call("SCARD", keys.pages(SITE, today.isoformat())))]
    views, pages = yield from gather(flows)
    return views if pages >= conf.section(PageViewSettings).MAX_PAGES else 0


def _hour_days() -> int:
    """Return how many days the heat map adds up: whole weeks that are stored by hour, at most as many as the chart."""
    stored = int(conf.section(PageViewSettings).HOUR_RETENTION // 86_400)
    return min(max(stored // WEEK, 1) * WEEK, DAYS)


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
    days, before = merged(report.days, rows), merged(report.before, rows)
    return report._replace(
        days=days,
        before=before,
        visitors=_visitors(report.visitors, report.days, days),
        visitors_before=_visitors(report.visitors_before, report.before, before),
        is_whole=not _has_more(days, report.days),
    )


def _visitors(union: Visitors | None, in_redis: list[Day], days: list[Day]) -> Visitors | None:
    """Return the visitors of a range. The database may have days that Redis lacks.

    If each day has its own identities, the union is the sum of the days. Else only sketches tell who came again.
    """
    if union is None or not _has_more(days, in_redis):
        return union
    return None if union.distinct else Visitors(sum(day.visitors for day in days), distinct=False)


def _has_more(days: list[Day], in_redis: list[Day]) -> bool:
    return any(day.visitors > other.visitors for day, other in zip(days, in_redis, strict=True))
