"""The ranges of time that pages offer for numbers by minute, of up to 72 hours, and by hour, of up to 90 days."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from redis_kit.core.panels.content import Ranges


class Range(NamedTuple):
    """A range of time: its label, its minutes, those of one bar, and whether its numbers are read by hour."""

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

    def bars(self, numbers: Sequence[float]) -> list[Sequence[float]]:
        """Return the numbers of each bar, given those of each minute or hour of the range."""
        size = self.bar // 60 if self.by_hour else self.bar
        return [numbers[at : at + size] for at in range(0, len(numbers), size)]

    def last_minute(self, start: datetime) -> int:
        """Return the last minute of the range, counted since 1970, given the start of its last minute or hour."""
        return int(start.timestamp()) // 60 + (59 if self.by_hour else 0)

    def labels(self, last: int) -> list[str]:
        """Return the label of each bar, given the last minute of the range, counted since 1970."""
        starts = range(last + 1 - self.minutes, last + 1, self.bar)
        return [label(start, day=self.minutes >= 24 * 60) for start in starts]


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
    local = timezone.localtime(datetime.fromtimestamp(minute * 60, UTC))
    return local.strftime("%m-%d %H:%M" if day else "%H:%M")
