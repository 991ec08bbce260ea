"""Dates and times as arguments, a range of days, and the first day of a week."""

from datetime import date, datetime, timedelta

from django.conf import settings
from django.utils.formats import get_format
from django.utils.timezone import get_default_timezone, is_naive, make_aware

from redis_kit.core.errors import InvalidValue
from redis_kit.core.text import shortened

MOST_DAYS = 366  # of a range


def checked(name: str, day: date) -> date:
    """Return a day. Raises InvalidValue unless it is a date; a datetime is not one."""
    if not isinstance(day, date) or isinstance(day, datetime):
        raise InvalidValue(f"{name} must be a date, not {day!r}.")
    return day


def aware(name: str, moment: datetime) -> datetime:
    """Return a time with its time zone; one without it is in TIME_ZONE.

    Raises InvalidValue unless it is a datetime, and with USE_TZ for one without a time zone.
    """
    if not isinstance(moment, datetime):
        raise InvalidValue(f"{name} must be a datetime, not {shortened(moment)}.")
    if not is_naive(moment):
        return moment
    if settings.USE_TZ:
        raise InvalidValue(f"{name} is {moment!r}, without a time zone; with USE_TZ it must have one.")
    return make_aware(moment, get_default_timezone())


def between(start: date, end: date) -> list[date]:
    """Return the days from start to end, both included. Raises InvalidValue unless these are 1 to 366 days."""
    first, last = checked("start", start), checked("end", end)
    count = (last - first).days + 1
    if not 1 <= count <= MOST_DAYS:
        raise InvalidValue(f"start and end are {start} and {end}; a range has 1 to {MOST_DAYS} days, and ends last.")
    return [start + timedelta(number) for number in range(count)]


def first_weekday() -> int:
    """Return the day on which weeks begin in the active language, 0 for Monday."""
    return (int(get_format("FIRST_DAY_OF_WEEK")) - 1) % 7  # Django counts from Sunday
