"""The day of a sign-in: a date in the user's time zone, which may begin later than at midnight. A month of them."""

import calendar
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from functools import partial, reduce
from typing import Any, NamedTuple, TypeVar
from zoneinfo import ZoneInfo

from asgiref.sync import sync_to_async
from django.core.exceptions import SynchronousOnlyOperation
from django.utils import timezone

from redis_kit.core import conf, dates
from redis_kit.core.awaitables import LocalCall
from redis_kit.core.errors import ConfigurationError, InvalidValue
from redis_kit.core.text import shortened
from redis_kit.core.values.numbers import is_whole, whole_number
from redis_kit.signins.settings import REMEDY, SignInSettings

FIRST = date(2000, 1, 1)
Result = TypeVar("Result")


class Moment(NamedTuple):
    """The day of a sign-in. ``zone`` is the offset and name of its zone, empty for a day that was given as a date.

    The offset is the number of seconds from UTC to the start of a day. ``seconds`` is the time since 1970.
    """

    day: date
    zone: str
    seconds: int


class CalendarDay(NamedTuple):
    """One day of a calendar."""

    date: date
    marked: bool
    is_today: bool
    made_up: bool = False
    frozen: bool = False


@dataclass(frozen=True)
class Calendar:
    """A month: ``marks[0]`` is True if there was a sign-in on its first day. ``today`` is in the user's time zone.

    A day in ``covered`` was made up if it has a mark, too. Otherwise it is frozen.
    """

    year: int
    month: int
    marks: Sequence[bool]
    today: date
    covered: Sequence[bool]

    @property
    def count(self) -> int:
        """Return the number of days with a sign-in."""
        return sum(self.marks)

    @property
    def make_ups(self) -> int:
        """Return the number of days that were made up."""
        return sum(mark and covered for mark, covered in zip(self.marks, self.covered, strict=True))

    @property
    def freezes(self) -> int:
        """Return the number of frozen days."""
        return sum(self.covered) - self.make_ups

    @property
    def days(self) -> list[CalendarDay]:
        """Return the days of the month."""
        return [self._day(*day) for day in enumerate(zip(self.marks, self.covered, strict=True), 1)]

    def weeks(self, *, first_weekday: int = 0) -> list[list[CalendarDay | None]]:
        """Return the days in weeks of seven, with None outside the month; ``first_weekday`` is 0 (Monday) to 6."""
        days = self.days
        first = whole_number("first_weekday", first_weekday, (0, 6))
        numbers = calendar.Calendar(first).monthdayscalendar(self.year, self.month)
        return [[days[number - 1] if number else None for number in week] for week in numbers]

    def _day(self, number: int, marks: tuple[bool, bool]) -> CalendarDay:
        day, (marked, covered) = date(self.year, self.month, number), marks
        return CalendarDay(day, marked, day == self.today, marked and covered, covered and not marked)


def zone(instance: Any) -> tzinfo:
    """Return an instance's time zone by the setting ``TIMEZONE``.

    Raises InvalidValue for a zone that does not exist, and ConfigurationError if the setting's attribute or function
    fails.
    """
    where = conf.section(SignInSettings).TIMEZONE
    if where is None or instance is None:
        return timezone.get_current_timezone()
    value = _value(instance, where)
    if isinstance(value, tzinfo):
        return value
    if not value:
        return timezone.get_current_timezone()
    try:
        return ZoneInfo(str(value))
    except (KeyError, ValueError, OSError):
        raise InvalidValue(f"The time zone of {instance!r} is {value!r}; use a name such as 'Asia/Tokyo'.") from None


def now(where: tzinfo) -> datetime:
    """Return the present time in a zone."""
    return datetime.now(where)


def today(instance: Any = None) -> date:
    """Return today's date for an instance; without one, in Django's current time zone."""
    return _day(now(zone(instance)))


def moment(instance: Any, at: datetime | date | None = None) -> Moment:
    """Return the day of a datetime for an instance. A date is returned unchanged, and None means now.

    Raises InvalidValue for a datetime without a time zone if ``USE_TZ`` is on, and for a day before 2000 or in the
    future.
    """
    where = zone(instance)
    present = now(where)
    latest = _day(present)
    if at is None or isinstance(at, datetime):
        local = present if at is None else dates.aware("at", at).astimezone(where)
        given = Moment(_day(local), _zone_text(local), int(local.timestamp()))
    else:
        given = Moment(checked("at", at), "", 0)
    if not FIRST <= given.day <= latest:
        raise InvalidValue(f"at is {at}; it must be a day from {FIRST} to {latest}, which is today.")
    return given


async def aread(function: Callable[..., Result], *args: Any) -> Result:
    """Return what today() or moment() returns. It runs in a thread if a zone has to come from the database."""
    try:
        return function(*args)
    except ConfigurationError as error:
        if not isinstance(error.__cause__, SynchronousOnlyOperation):
            raise
    return await sync_to_async(function)(*args)


def reading(function: Callable[..., Any], *args: Any) -> LocalCall:
    """Return the step that calls today() or moment(), in async code by aread()."""
    return LocalCall(function, partial(aread, function), *args)


def checked(name: str, day: date | None) -> date:
    """Return a day; today for None. Raises InvalidValue unless it is a date and no datetime."""
    return today() if day is None else dates.checked(name, day)


def between(start: date, end: date) -> list[date]:
    """Return the days from start to end, both included. Raises InvalidValue unless these are 1 to 366."""
    return dates.between(checked("start", start), checked("end", end))


def month_length(year: int, month: int) -> int:
    """Return the number of days of a month. Raises InvalidValue unless it is a month from 2000 to 9999."""
    if not is_whole(year) or not 2000 <= year <= 9999:
        raise InvalidValue(f"year must be a whole number from 2000 to 9999, not {shortened(year)}.")
    whole_number("month", month, (1, 12))
    return calendar.monthrange(year, month)[1]


def _value(instance: Any, where: str | Callable[[Any], Any]) -> Any:
    try:
        return where(instance) if callable(where) else reduce(getattr, where.split("."), instance)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".removesuffix(": ")
        wrong = f"REDIS_KIT['SIGNINS']['TIMEZONE'] is {where!r}, which can't be read: {reason}."
        raise ConfigurationError(f"{wrong} {REMEDY}") from error


def _day(local: datetime) -> date:
    # By the wall clock: a day begins at this hour, even if the clock changed in the night.
    wall = local.replace(tzinfo=None) - timedelta(hours=conf.section(SignInSettings).DAY_START_HOUR)
    return wall.date()


def _zone_text(local: datetime) -> str:
    offset = (local.utcoffset() or timedelta()).total_seconds() - 3600 * conf.section(SignInSettings).DAY_START_HOUR
    return f"{offset:.0f} {local.tzinfo}"
