"""Days of the site: in Django's ``TIME_ZONE``, not the viewer's."""

import calendar
from datetime import date, datetime

from django.utils import timezone

from redis_kit.core import dates
from redis_kit.core.errors import InvalidValue


def now() -> datetime:
    """Return the current time in the site's time zone."""
    return datetime.now(timezone.get_default_timezone())


def local(moment: datetime | None) -> datetime:
    """Return a time in the site's time zone; now for None. Raises InvalidValue unless it has a time zone."""
    if moment is None:
        return now()
    if not isinstance(moment, datetime) or moment.tzinfo is None:
        raise InvalidValue(f"at must be a datetime with a time zone, not {moment!r}.")
    return moment.astimezone(timezone.get_default_timezone())


def checked(name: str, day: date | None) -> date:
    """Return a day; today for None. Raises InvalidValue unless it is a date and no datetime."""
    return now().date() if day is None else dates.checked(name, day)


def days(start: date | None, end: date | None) -> list[date]:
    """Return the days from start to end, both included. The end defaults to today, the start to the end.
    Raises InvalidValue unless these are 1 to 366 days.
    """
    first = None if start is None else checked("start", start)
    last = checked("end", end)
    return dates.between(last if first is None else first, last)


def months(wanted: list[date]) -> dict[str, list[date]]:
    """Return the days by month, such as ``2026-11``."""
    by_month: dict[str, list[date]] = {}
    for day in wanted:
        by_month.setdefault(f"{day:%Y-%m}", []).append(day)
    return by_month


def sketches(wanted: list[date]) -> list[str]:
    """Return the fewest periods that cover the days: whole months, and single days."""
    periods: list[str] = []
    for month, part in months(wanted).items():
        whole = len(part) == calendar.monthrange(part[0].year, part[0].month)[1]
        periods += [month] if whole else [day.isoformat() for day in part]
    return periods
