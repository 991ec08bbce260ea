"""Sign-ins as charts: a year as squares, active users as lines, cohorts as a shaded table."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any

from django.utils.dates import WEEKDAYS_ABBR
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from redis_kit.core.dates import first_weekday
from redis_kit.core.panels import HeatCell, HeatMap, LineChart, Shade, Table
from redis_kit.signins.cohorts.counts import ActiveDay
from redis_kit.signins.cohorts.retention import Cohort

WEEKS = 53


def year_to(last: date) -> list[date]:
    """Return the days of the 53 weeks that end with the week of a day, up to that day."""
    ahead = (last.weekday() - first_weekday()) % 7
    return [last - timedelta(ago) for ago in range(ahead + 7 * (WEEKS - 1), -1, -1)]


def year_of_days(title: str, last: date, values: Mapping[date, float]) -> HeatMap:
    """Return a row for each weekday and a column for each of 53 weeks."""
    days = year_to(last)
    names = [date_format(day, "DATE_FORMAT") for day in days]
    names[-1] = _("%(day)s, so far") % {"day": names[-1]}
    cells = [HeatCell(at % 7, at // 7, names[at], values.get(day, 0)) for at, day in enumerate(days)]
    months = [date_format(day, "M") for day in days[::7]]
    return HeatMap(title, [str(WEEKDAYS_ABBR[(first_weekday() + row) % 7]) for row in range(7)], months, cells)


def active_users(title: str, lines: Sequence[tuple[str, Sequence[ActiveDay]]]) -> LineChart:
    """Return a line for each name, over the same days, the last of which goes on and has an asterisk."""
    labels = [date_format(day.day, "MONTH_DAY_FORMAT") for day in lines[0][1]]
    labels[-1] += "*"
    return LineChart(title, labels, [(name, [day.users for day in days]) for name, days in lines])


def cohort_table(title: str, cohorts: Sequence[Cohort]) -> Table:
    """Return a row for each cohort, the newest first, with the share of its users in each week after its own.

    The newest cohort and the last week of each cohort have an asterisk if that week goes on.
    """
    most = max((len(cohort.retained) for cohort in cohorts), default=0)
    columns = [_("Week of"), _("New users"), *(_("Week %(number)d") % {"number": at} for at in range(1, most))]
    rows = [_cohort_row(cohort, most) for cohort in reversed(cohorts) if cohort.size]
    return Table(title, columns, rows, empty=_("No user signed in for the first time in these weeks."))


def covered_days(title: str, days: Sequence[tuple[date, str]]) -> Table:
    """Return a row for each day that was made up or frozen, the newest first."""
    names = {"make_up": _("made up"), "freeze": _("frozen")}
    rows = [(date_format(day, "DATE_FORMAT"), names[kind]) for day, kind in reversed(days) if kind in names]
    return Table(title, (_("Day"), _("Kind")), rows, empty=_("No day in these weeks."))


def _cohort_row(cohort: Cohort, most: int) -> list[Any]:
    shares = [users / cohort.size for users in cohort.retained[1:]]
    texts = [date_format(cohort.day, "DATE_FORMAT"), *(f"{100 * share:.0f} %" for share in shares)]
    if cohort.partial:
        texts[-1] += "*"
    cells = [Shade(text, share) for text, share in zip(texts[1:], shares, strict=True)]
    return [texts[0], cohort.size, *cells, *[""] * (most - 1 - len(cells))]
