"""The dashboard's page about page views: of the site, of one page or object, or of two pages side by side."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from typing import Any, NamedTuple

from django.db import DatabaseError, router, transaction
from django.utils.dates import WEEKDAYS, WEEKDAYS_ABBR
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from redis_kit.core import conf, connections
from redis_kit.core.dates import first_weekday
from redis_kit.core.errors import InvalidName
from redis_kit.core.flow import Flow
from redis_kit.core.gather import gather
from redis_kit.core.panels import (
    Content,
    Field,
    Figure,
    HeatCell,
    HeatMap,
    LineChart,
    Link,
    Panel,
    Search,
    Sparkline,
    Table,
    Tile,
)
from redis_kit.core.text import grouped
from redis_kit.pageviews import counter, keys, periods
from redis_kit.pageviews.counter import Day, Overlap, PageViews, Trend, Visitors
from redis_kit.pageviews.database.models import PageViewSnapshot, digest_of
from redis_kit.pageviews.database.snapshots import merged, rows_of
from redis_kit.pageviews.settings import PageViewSettings

DAYS = 28  # of a chart, and as many before
WEEK = 7
HOURS = 24
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


class PageViewsPanel(Panel):
    """Views and visitors by day and hour, the most viewed pages, and where visitors come from."""

    slug = "pageviews"
    title = gettext_lazy("Page views")

    def search(self) -> Search | None:
        """Return the form for one page, one object, or two pages."""
        fields = (
            Field("page", gettext_lazy("Page (empty: the whole site)"), optional=True),
            Field("key", gettext_lazy("Key of an object"), optional=True),
            Field("other", gettext_lazy("Compare with the page"), optional=True),
        )
        return Search(gettext_lazy("Show"), fields)

    def content(self) -> Iterator[Content]:
        """Return the content, in one round trip; a comparison in a Cluster in two."""
        page, key, other = map(self.asked, ("page", "key", "other"))
        try:
            yield from _compared(page, key, other) if other else _shown(page, key if page else "")
        except InvalidName as error:
            yield Table(_("Page views"), (), [], empty=str(error))

    def reads(self) -> dict[str, Flow[Any]]:
        """Return today's numbers of the site, and the views of two days by hour. One round trip."""
        site, today = _page(""), periods.now().date()
        flows: list[Flow[Any]] = [
            counter.by_day(site.encoded, [today]),
            counter.online(site.encoded),
            counter.hours_of_days(site.encoded, [today - timedelta(1), today]),
        ]
        return {site.using: gather(flows)}

    def tile(self, replies: Mapping[str, Any]) -> Tile | None:
        """Return today's views and visitors, and the views of the last 24 hours."""
        (((today,), online, days),) = replies.values()
        end = HOURS + periods.now().hour + 1
        hours = [count for day in days for count in day][end - HOURS : end]
        views = sum(hours)
        text = ngettext("%(count)s view in 24 hours", "%(count)s views in 24 hours", views) % {"count": grouped(views)}
        figures = [
            Figure(_("Views today"), today.views),
            Figure(_("Visitors today"), today.visitors),
            Figure(_("Online"), online),
        ]
        return Tile(figures, Sparkline(text, hours))


def _page(name: str, key: str = "") -> PageViews:
    return PageViews(name, key or None, on_failure="raise") if name else PageViews.site(on_failure="raise")


def _shown(page: str, key: str) -> Iterator[Content]:
    (report,), _overlap = _read(_page(page, key))
    yield from _figures(report, is_site=not page)
    for title, field in _charted():
        lines = [(_("Last %d days") % DAYS, report.last), (_("The %d days before") % DAYS, report.before)]
        yield _chart(title, field, lines)
    yield _heat_map(report.hours)
    if not key:
        column = _("Object") if page else _("Page")
        top = [(_link(page, name), views) for name, views in report.top]
        trends = [(_link(page, trend.name), round(trend.score, 1)) for trend in report.trends]
        title = _("Top objects today") if page else _("Top pages today")
        yield Table(title, (column, _("Views")), top, empty=_("No views today."))
        yield Table(_("Trending now"), (column, _("Score")), trends, empty=_("No views lately."))
    none = _("No view came from another site.")
    yield Table(_("Referrers today"), (_("Site"), _("Views")), report.referrers, empty=none)
    none = _("No view came from a campaign.")
    yield Table(_("Campaigns today"), (_("Campaign"), _("Views")), report.campaigns, empty=none)


def _figures(report: Report, *, is_site: bool) -> Iterator[Figure]:
    """Yield today's numbers, those of the last days, and the share of bots."""
    today = report.days[-1]
    yield Figure(_("Views today"), today.views)
    yield Figure(_("Unique visitors today"), today.visitors, hint=_("An estimate: ±0.81 %."))
    yield Figure(_("Visitors online"), report.online, hint=_("in the last five minutes"))
    views, bots = report.total("views"), report.total("bots")
    yield Figure(_("Views in %d days") % DAYS, views, hint=_change(views, sum(day.views for day in report.before)))
    hint = _lacking() if report.visitors is None else ""
    if report.visitors is not None and not report.visitors.distinct:
        hint = _("A visitor counts once for each day, as identities change.")
    yield _visitors(report, hint)
    share = f"{100 * bots / (views + bots):.0f} %" if views + bots else None
    requests = {"bots": grouped(bots), "requests": grouped(views + bots), "days": DAYS}
    hint = _("%(bots)s of %(requests)s requests in %(days)d days") % requests
    yield Figure(_("Requests of bots"), share, hint=hint)
    if is_site and any(report.dropped):
        hint = _("%s of them today. The log of each process says why.") % grouped(report.dropped[-1])
        yield Figure(_("Dropped views in %d days") % DAYS, sum(report.dropped), hint=hint, alarm=report.dropped[-1] > 0)


def _compared(page: str, key: str, other: str) -> Iterator[Content]:
    """Yield the common visitors of two pages, and their views and visitors by day."""
    reports, overlap = _read(_page(page, key), _page(other))
    names = (" ".join(filter(None, (page or _("Whole site"), key))), other)
    common, hint = None, _lacking()
    if overlap is not None:
        common = f"{grouped(overlap.common)} ± {grouped(overlap.error)}"
        hint = "" if overlap.distinct else _("Each day has its own identities, so this counts visits by day.")
    yield Figure(_("Common visitors in %d days") % DAYS, common, hint=hint)
    for name, report in zip(names, reports, strict=True):
        yield Figure(_("Views in %d days") % DAYS, report.total("views"), hint=name)
    for name, report in zip(names, reports, strict=True):
        yield _visitors(report, name)
    for title, field in _charted():
        yield _chart(title, field, [(name, report.last) for name, report in zip(names, reports, strict=True)])


def _charted() -> Iterator[tuple[str, str]]:
    yield _("Views by day"), "views"
    yield _("Unique visitors by day"), "visitors"


def _chart(title: str, field: str, lines: Sequence[tuple[str, Sequence[Day]]]) -> LineChart:
    """Return a line for each name, over the days of the first one."""
    labels = [date_format(day.day, "MONTH_DAY_FORMAT") for day in lines[0][1]]
    return LineChart(title, labels, [(name, [getattr(day, field) for day in days]) for name, days in lines])


def _heat_map(hours: Sequence[tuple[date, Sequence[int]]]) -> HeatMap:
    """Return the views of some days added up by weekday and hour."""
    weekdays = [(first_weekday() + row) % 7 for row in range(7)]
    views: Counter[tuple[int, int]] = Counter()
    for day, counts in hours:
        for hour, count in enumerate(counts):
            views[day.weekday(), hour] += count
    cells = [
        HeatCell(row, hour, f"{WEEKDAYS[weekday]} {hour:02}:00", views[weekday, hour])
        for row, weekday in enumerate(weekdays)
        for hour in range(HOURS)
    ]
    title = _("Views by weekday and hour, in %d days") % len(hours)
    columns = [f"{hour:02}" for hour in range(HOURS)]
    return HeatMap(title, [WEEKDAYS_ABBR[weekday] for weekday in weekdays], columns, cells)


def _visitors(report: Report, hint: str) -> Figure:
    visitors = None if report.visitors is None else int(report.visitors)
    return Figure(_("Visitors in %d days") % DAYS, visitors, hint=hint)


def _lacking() -> str:
    return _("Redis no longer has all of these days.")


def _change(now: int, before: int) -> str:
    if not before:
        return _("none in the %d days before") % DAYS
    change = round(100 * (now - before) / before)
    signed = f"{'+' if change >= 0 else ''}{grouped(change)}"
    return _("%(change)s %% to the %(days)d days before") % {"change": signed, "days": DAYS}


def _link(page: str, name: str) -> Link:
    return Link(name, PageViewsPanel.slug, {"page": page, "key": name} if page else {"page": name})


def _read(*pages: PageViews) -> tuple[list[Report], Overlap | None]:
    """Return the reports of one or two pages, and the common visitors of two if Redis has all of their days.

    One round trip, or two for two pages in a Cluster, and one query.
    """
    today = periods.now().date()
    days = periods.days(today - timedelta(2 * DAYS - 1), today)
    names = [page.encoded for page in pages]
    flows: list[Flow[Any]] = [_report(name, days) for name in names]
    if len(names) > 1:
        is_cluster = connections.client(pages[0].using).is_cluster
        flows.append(counter.overlap(names[0], names[1], days[DAYS:], is_cluster=is_cluster))
    replies = pages[0].run_flow(gather(flows))
    reports = _with_snapshots(names, replies[: len(names)], days)
    is_whole = len(names) > 1 and all(report.is_whole for report in reports)
    return reports, replies[-1] if is_whole else None


def _report(name: str, days: list[date]) -> Flow[Report]:
    last, today = days[DAYS:], days[-1]
    # The heat map adds up whole weeks that are stored by hour, at most as many as the chart has.
    weeks = int(conf.section(PageViewSettings).HOUR_RETENTION // (WEEK * 86_400))
    hour_days = days[-min(max(weeks, 1) * WEEK, DAYS) :]
    flows: list[Flow[Any]] = [
        counter.by_day(name, days),
        counter.visitors(name, last),
        counter.hours_of_days(name, hour_days),
        counter.online(name),
        counter.top(name, today.isoformat(), LISTED),
        counter.trending(name, LISTED),
        counter.sources(keys.referrers(name, today), SOURCES),
        counter.sources(keys.campaigns(name, today), SOURCES),
        counter.dropped(last),
    ]
    by_day, visitors, hours, *others = yield from gather(flows)
    return Report(by_day, visitors, list(zip(hour_days, hours, strict=True)), *others)


def _with_snapshots(names: list[str], reports: list[Report], days: list[date]) -> list[Report]:
    """Return the reports with the days that only the database has. Without its table they stay as they are."""
    try:
        with transaction.atomic(using=router.db_for_read(PageViewSnapshot)):
            rows = list(rows_of(names, days))
    except DatabaseError:
        return reports
    return [
        _with_rows(report, [row for row in rows if row.digest == digest_of(name)])
        for name, report in zip(names, reports, strict=True)
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
