"""A month of sign-ins."""

import calendar
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

from redis_kit.core.errors import InvalidValue
from redis_kit.core.text import shortened
from redis_kit.core.values.numbers import is_whole, whole_number


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


def month_length(year: int, month: int) -> int:
    """Return the number of days of a month. Raises InvalidValue unless it is a month from 2000 to 9999."""
    if not is_whole(year) or not 2000 <= year <= 9999:
        raise InvalidValue(f"year must be a whole number from 2000 to 9999, not {shortened(year)}.")
    whole_number("month", month, (1, 12))
    return calendar.monthrange(year, month)[1]
