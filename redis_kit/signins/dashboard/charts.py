"""Sign-ins as charts: a year as squares, cohorts as a shaded table, days as CSV."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any

from django.utils.dates import WEEKDAYS_ABBR
from django.utils.formats import date_format, get_format
from django.utils.translation import gettext as _

from redis_kit.core.panels import HeatCell, HeatMap, Listing, Shade, Table
from redis_kit.signins.cohorts.counts import ActiveDay
from redis_kit.signins.cohorts.retention import Cohort

WEEKS = 53


def first_day(last: date) -> date:
    """Return the first day of the 53 weeks that end with the week of a day."""
    ahead = (last.weekday() - _first_weekday()) % 7
    return last - timedelta(ahead + 7 * (WEEKS - 1))


def year_of_days(title: str, last: date, values: Mapping[date, float]) -> HeatMap:
    """Return a row for each weekday and a column for each of 53 weeks."""
    first = first_day(last)
    days = [first + timedelta(at) for at in range((last - first).days + 1)]
    cells = [
        HeatCell(at % 7, at // 7, date_format(day, "DATE_FORMAT"), values.get(day, 0)) for at, day in enumerate(days)
    ]
    months = [date_format(day, "M") for day in days[::7]]
    return HeatMap(title, [str(WEEKDAYS_ABBR[(_first_weekday() + row) % 7]) for row in range(7)], months, cells)


def cohort_table(title: str, cohorts: Sequence[Cohort]) -> Table:
    """Return a row for each cohort, the newest first, with the share of its users in each week after its own."""
    most = max((len(cohort.retained) for cohort in cohorts), default=0)
    columns = [_("Week of"), _("New users"), *(_("Week %(number)d") % {"number": at} for at in range(1, most))]
    rows = [_cohort_row(cohort, most) for cohort in reversed(cohorts) if cohort.size]
    return Table(title, columns, rows, empty=_("No user signed in for the first time in these weeks."))


def as_csv(days: Sequence[ActiveDay]) -> Listing:
    """Return days as CSV: dates and numbers, which no spreadsheet takes for formulas."""
    lines = ["day,users", *(f"{day},{users}" for day, users in days)]
    return Listing(_("Users by day as CSV"), "\n".join(lines))


def _cohort_row(cohort: Cohort, most: int) -> list[Any]:
    shares = [users / cohort.size for users in cohort.retained[1:]]
    cells = [Shade(f"{100 * share:.0f} %", share) for share in shares]
    return [date_format(cohort.day, "DATE_FORMAT"), cohort.size, *cells, *[""] * (most - 1 - len(cells))]


def _first_weekday() -> int:
    return (int(get_format("FIRST_DAY_OF_WEEK")) - 1) % 7  # Django counts from Sunday, Python from Monday
