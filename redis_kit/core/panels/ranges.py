"""The ranges of time that pages offer for numbers by minute, of up to 72 hours, and by hour, of up to 90 days."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, NamedTuple

from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from redis_kit.core.panels.content import Ranges

DAY = 24 * 60  # minutes


class Range(NamedTuple):
    """A range of time: its label, its minutes, those of one bar, and whether its numbers are read by hour.

    Bars begin at full multiples of their length on the clock, so the first and the last of a range may be shorter.
    """

    label: Any
    minutes: int
    bar: int
    by_hour: bool = True

    @property
    def hours(self) -> int:
        """Return its length in hours."""
        return self.minutes // 60

    def choice(self, slug: str, asked: Mapping[str, str]) -> Ranges:
        """Return the choice of a range on the page of a panel, with this one chosen. ``asked`` is the search there."""
        return Ranges(slug, [(each.label, each.hours) for each in RANGES.values()], self.hours, asked)

    def bars(self, numbers: Sequence[float], last: int) -> list[Sequence[float]]:
        """Return the numbers of each bar, given those of each minute or hour, and the last minute of the range."""
        first = last + 1 - self.minutes
        places = [(start - first) // self._unit for start in self._starts(last)]
        return [numbers[begin:end] for begin, end in pairwise([*places, len(numbers)])]

    def last_minute(self, start: datetime) -> int:
        """Return the last minute of the range, counted since 1970, given the start of its last minute or hour."""
        return int(start.timestamp()) // 60 + (59 if self.by_hour else 0)

    def labels(self, last: int) -> list[str]:
        """Return the label of each bar, given the last minute of the range, counted since 1970."""
        if self.bar == DAY:
            return [_local(start).strftime("%m-%d") for start in self._starts(last)]
        return [label(start, day=self.minutes >= DAY) for start in self._starts(last)]

    @property
    def _unit(self) -> int:
        return 60 if self.by_hour else 1

    def _starts(self, last: int) -> list[int]:
        """Return the first minute of each bar."""
        first, clock = last + 1 - self.minutes, _local(last)
        over = (60 * clock.hour + clock.minute) % self.bar + 1  # minutes of the last bar
        over = max(over - over % self._unit, self._unit)  # in zones whose hours begin at half an hour
        return [first, *reversed(range(last + 1 - over, first, -self.bar))]


RANGES = {
    1: Range(_("1 hour"), 60, 1, by_hour=False),
    6: Range(_("6 hours"), 6 * 60, 10, by_hour=False),
    24: Range(_("24 hours"), 24 * 60, 30, by_hour=False),
    72: Range(_("72 hours"), 72 * 60, 60),
    168: Range(_("7 days"), 168 * 60, 120),
    720: Range(_("30 days"), 720 * 60, 8 * 60),
    2160: Range(_("90 days"), 2160 * 60, 24 * 60),
}


def range_of(asked: str) -> Range:
    """Return the range that a viewer asks for, in hours; one hour unless it is offered."""
    return RANGES[int(asked) if asked in map(str, RANGES) else 1]


def label(minute: int, *, day: bool) -> str:
    """Return the label of a minute, counted since 1970: its time, and its day if wanted."""
    return _local(minute).strftime("%m-%d %H:%M" if day else "%H:%M")


def _local(minute: int) -> datetime:
    return timezone.localtime(datetime.fromtimestamp(minute * 60, UTC))
