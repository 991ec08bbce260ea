"""Dates as arguments, a day and a range of days, and the first day of a week."""

from datetime import date, datetime, timedelta

from django.utils.formats import get_format

from redis_kit.core.errors import InvalidValue

MOST_DAYS = 366  # of a range


def checked(name: str, day: date) -> date:
    """Return a day. Raises InvalidValue unless it is a date; a datetime is not one."""
    if not isinstance(day, date) or isinstance(day, datetime):
        raise InvalidValue(f"{name} must be a date, not {day!r}.")
    return day


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
