"""The days on which one user signed in."""

from collections.abc import Iterator
from datetime import date, timedelta

from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow
from redis_kit.core.steps import Batch, Call
from redis_kit.signins.calendar import Calendar, month_length
from redis_kit.signins.days import FIRST
from redis_kit.signins.users.base import BYTES, SignInUser, Summary, covered_days, days_with_kinds, offset, summarized

WEEK = 7  # days


class History(SignInUser):
    """Questions about the days of one user. Each is a flow of one round trip."""

    def summary(self, today: date) -> Flow[Summary]:
        """Return streak, longest streak, total and first day."""
        return summarized((yield Call("GET", self.state_key())), today)

    def overview(self, start: date, end: date) -> Flow[tuple[Summary, list[tuple[date, str]]]]:
        """Return the summary on the last day, and the days from start to end, both included, with their kinds."""
        years = range(start.year, end.year + 1)
        state, *bitmaps = yield Batch([Call("GET", key) for key in (self.state_key(), *map(self.year_key, years))])
        days = [(day, kind) for day, kind in days_with_kinds(years, bitmaps) if start <= day <= end]
        return summarized(state, end), days

    def count(self, start: date, end: date) -> Flow[int]:
        """Return the number of days with a sign-in from start to end, both included.

        Raises InvalidValue if the end is before the start.
        """
        calls = [Call("BITCOUNT", self.year_key(year), *bits, "BIT") for year, *bits in _years(start, end)]
        return sum((yield Batch(calls))) if calls else 0

    def first(self, start: date, end: date) -> Flow[date | None]:
        """Return the first day with a sign-in from start to end, both included; None if there is none.

        Raises InvalidValue if the end is before the start.
        """
        years = list(_years(start, end))
        calls = [Call("BITPOS", self.year_key(year), 1, *bits, "BIT") for year, *bits in years]
        places = (yield Batch(calls)) if calls else []
        days = (date(year, 1, 1) + timedelta(at) for at, (year, *_) in zip(places, years, strict=True) if at >= 0)
        return next(days, None)

    def marked(self, day: date) -> Flow[bool]:
        """Return whether there was a sign-in on a day."""
        return bool((yield Call("GETBIT", self.year_key(day.year), offset(day))))

    def calendar(self, year: int, month: int, today: date) -> Flow[Calendar]:
        """Return a month. Raises InvalidValue for a month that does not exist."""
        length = month_length(year, month)
        first, covered_from = date(year, month, 1), Call("GETRANGE", self.year_key(year), BYTES, -1)
        (marks,), behind = yield Batch([self._slice(first, length), covered_from])
        covered = covered_days(year, behind)
        is_covered = [first + timedelta(at) in covered for at in range(length)]
        return Calendar(year, month, _bits(marks, length), today, is_covered)

    def week(self, first: date) -> Flow[list[bool]]:
        """Return for seven days from the first on whether there was a sign-in."""
        rest = (date(first.year, 12, 31) - first).days + 1
        calls = [self._slice(first, min(WEEK, rest))]
        if rest < WEEK:
            calls.append(self._slice(date(first.year + 1, 1, 1), WEEK - rest))
        lengths = [min(WEEK, rest), WEEK - rest]
        replies = yield Batch(calls)
        return [bit for (bits,), length in zip(replies, lengths, strict=False) for bit in _bits(bits, length)]

    def _slice(self, first: date, length: int) -> Call:
        return Call("BITFIELD_RO", self.year_key(first.year), "GET", f"u{length}", offset(first))


def _bits(number: int, length: int) -> list[bool]:
    return [bit == "1" for bit in f"{number:0{length}b}"]


def _years(start: date, end: date) -> Iterator[tuple[int, int, int]]:
    """Yield each year of a range with the offsets of its first and its last day there."""
    if end < start:
        raise InvalidValue(f"start and end are {start} and {end}; a range must not end before it starts.")
    first, last = max(start, FIRST), min(end, date(date.today().year + 1, 12, 31))
    for year in range(first.year, last.year + 1):
        yield year, offset(max(first, date(year, 1, 1))), offset(min(last, date(year, 12, 31)))
