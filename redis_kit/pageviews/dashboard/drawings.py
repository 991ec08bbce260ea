"""The drawings of a report: figures, charts and tables."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date

from django.utils.dates import WEEKDAYS, WEEKDAYS_ABBR
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from redis_kit.core.dates import first_weekday
from redis_kit.core.panels import Figure, HeatCell, HeatMap, LineChart, Link, Sparkline, Table, Tile
from redis_kit.core.text import grouped
from redis_kit.pageviews.dashboard.report import DAYS, Report, Summary
from redis_kit.pageviews.pages import OTHER
from redis_kit.pageviews.questions.values import Day, Overlap

SLUG = "pageviews"
HOURS = 24


def overview(summary: Summary) -> Tile:
    """Return the tile of today's numbers and the views of the last 24 hours."""
    views = sum(summary.hours)
    text = ngettext("%(count)s view in 24 hours", "%(count)s views in 24 hours", views) % {"count": grouped(views)}
    figures = [
        Figure(_("Views today"), summary.today.views),
        Figure(_("Visitors today"), summary.today.visitors),
        Figure(_("Online"), summary.online),
    ]
    return Tile(figures, Sparkline(text, summary.hours))


def figures(report: Report, *, is_site: bool) -> Iterator[Figure]:
    """Yield today's numbers, those of the last days with their change, and the share of bots."""
    yield from _today(report.days[-1], report.online)
    yield Figure(_("Views in %d days") % DAYS, report.views, hint=_change(report.views, report.views_before))
    yield _visitors(report, hint=_visitors_hint(report))
    requests = report.views + report.bots
    share = f"{100 * report.bots / requests:.0f} %" if requests else None
    bots = _("%(bots)s of %(requests)s requests in %(days)d days") % {
        "bots": grouped(report.bots),
        "requests": grouped(requests),
        "days": DAYS,
    }
    yield Figure(_("Requests of bots"), share, hint=bots)
    if report.beyond_limit:
        hint = _("They count under %s. Raise MAX_PAGES, or name pages by @page.") % OTHER
        yield Figure(_("Views of pages beyond MAX_PAGES today"), report.beyond_limit, hint=hint, alarm=True)
    if is_site and any(report.dropped):
        hint = _("%s of them today. The log of each process says why.") % grouped(report.dropped[-1])
        yield Figure(_("Dropped views in %d days") % DAYS, sum(report.dropped), hint=hint, alarm=report.dropped[-1] > 0)


def charts(report: Report) -> Iterator[LineChart | HeatMap]:
    """Yield views and visitors by day beside the days before, and views by weekday and hour."""
    yield _beside_before(_("Views by day"), report, "views")
    yield _beside_before(_("Unique visitors by day"), report, "visitors")
    yield heat_map(report.hours)


def lists(report: Report, page: str, key: str) -> Iterator[Table]:
    """Yield the most viewed pages or objects, those that trend, and the sources of views."""
    if not key:
        column = _("Object") if page else _("Page")
        top = [(_link(page, name), views) for name, views in report.top]
        trends = [(_link(page, trend.name), round(trend.score, 1)) for trend in report.trends]
        title = _("Top objects today") if page else _("Top pages today")
        yield Table(title, (column, _("Views")), top, empty=_("No views today."))
        yield Table(_("Trending now"), (column, _("Score")), trends, empty=_("No views lately."))
    yield Table(
        _("Referrers today"), (_("Site"), _("Views")), report.referrers, empty=_("No view came from another site.")
    )
    yield Table(
        _("Campaigns today"), (_("Campaign"), _("Views")), report.campaigns, empty=_("No view came from a campaign.")
    )


def comparison(
    names: Sequence[str], reports: Sequence[Report], overlap: Overlap | None
) -> Iterator[Figure | LineChart]:
    """Yield the common visitors of two pages, and their views and visitors by day."""
    if overlap is None:
        common, hint = None, _lacking()
    else:
        common = f"{grouped(overlap.common)} ± {grouped(overlap.error)}"
        hint = "" if overlap.distinct else _("Each day has its own identities, so this counts visits by day.")
    yield Figure(_("Common visitors in %d days") % DAYS, common, hint=hint)
    for name, report in zip(names, reports, strict=True):
        yield Figure(_("Views in %d days") % DAYS, report.views, hint=name)
    for name, report in zip(names, reports, strict=True):
        yield _visitors(report, hint=name)
    days = [_label(day.day) for day in reports[0].days]
    for title, field in ((_("Views by day"), "views"), (_("Unique visitors by day"), "visitors")):
        lines = [(name, _values(report.days, field)) for name, report in zip(names, reports, strict=True)]
        yield LineChart(title, days, lines)


def heat_map(hours: Sequence[tuple[date, Sequence[int]]]) -> HeatMap:
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
    return HeatMap(
        title, [WEEKDAYS_ABBR[weekday] for weekday in weekdays], [f"{hour:02}" for hour in range(HOURS)], cells
    )


def _today(day: Day, online: int) -> Iterator[Figure]:
    yield Figure(_("Views today"), day.views)
    yield Figure(_("Unique visitors today"), day.visitors, hint=_("An estimate: ±0.81 %."))
    yield Figure(_("Visitors online"), online, hint=_("in the last five minutes"))


def _beside_before(title: str, report: Report, field: str) -> LineChart:
    lines = [
        (_("Last %d days") % DAYS, _values(report.days, field)),
        (_("The %d days before") % DAYS, _values(report.before, field)),
    ]
    return LineChart(title, [_label(day.day) for day in report.days], lines)


def _values(days: Sequence[Day], field: str) -> list[float | None]:
    return [getattr(day, field) for day in days]


def _label(day: date) -> str:
    return date_format(day, "MONTH_DAY_FORMAT")


def _visitors(report: Report, *, hint: str) -> Figure:
    visitors = None if report.visitors is None else int(report.visitors)
    return Figure(_("Visitors in %d days") % DAYS, visitors, hint=hint)


def _visitors_hint(report: Report) -> str:
    if report.visitors is None:
        return _lacking()
    if not report.visitors.distinct:
        return _("A visitor counts once for each day, as identities change.")
    return "" if report.visitors_before is None else _change(report.visitors, report.visitors_before)


def _lacking() -> str:
    return _("Redis no longer has all of these days.")


def _change(now: int, before: int) -> str:
    if not before:
        return _("none in the %d days before") % DAYS
    change = round(100 * (now - before) / before)
    return _("%(change)s %% to the %(days)d days before") % {
        "change": f"{'+' if change >= 0 else ''}{grouped(change)}",
        "days": DAYS,
    }


def _link(page: str, name: str) -> Link:
    return Link(name, SLUG, {"page": page, "key": name} if page else {"page": name})
