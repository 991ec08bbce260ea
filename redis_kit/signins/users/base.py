"""A user: its keys, its state, and questions about its days."""

import struct
from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from typing import Any, NamedTuple

from django.db.models import Model

from redis_kit.core import conf
from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow
from redis_kit.core.keys import bucket_of
from redis_kit.core.primitive import Primitive
from redis_kit.core.steps import Batch, Call
from redis_kit.signins import keys
from redis_kit.signins.calendar import Calendar, month_length
from redis_kit.signins.days import FIRST
from redis_kit.signins.settings import SignInSettings

STATE = struct.Struct("<IIIIIiII8s")
BYTES = 46
WEEK = 7  # days


class SignInStore(Primitive):
    """What carries out the flows of sign-ins."""

    component, settings = "signins", SignInSettings

    def __init__(self, name: str) -> None:
        super().__init__(name, using=conf.section(SignInSettings).USING)


class SignInModel(SignInStore):
    """A model whose instances sign in."""

    def __init__(self, model: Any) -> None:
        super().__init__(keys.label(model))
        self.model = model


class SignInUser(SignInModel):
    """One instance of a model, as it is stored: a bitmap per year with the day of the year as offset, and its state.

    The bitmaps are those of "Redis Deep Adventure" by Qian Wenpin, one for each year in place of one for all.
    """

    def __init__(self, model: Any, pk: Any) -> None:
        super().__init__(model)
        self.id = str(pk)
        self.member = keys.member_of(self.id)
        self.bucket = bucket_of(self.member)

    def tag(self) -> str:
        """Return the hash tag of the user's bucket."""
        return keys.tag(self.encoded, self.bucket)

    def state_key(self) -> str:
        """Return the key of the state."""
        return keys.user(self.tag(), self.member)

    def year_key(self, year: int) -> str:
        """Return the key of a year's bitmap."""
        return keys.year(self.tag(), self.member, year)


def pk_of(instance: Any, *, saved: bool = True) -> Any:
    """Return the primary key of an instance. Raises InvalidValue without one, and unless it is saved if it must be."""
    if not isinstance(instance, Model):
        raise InvalidValue(f"{instance!r} is not an instance of a model.")
    if instance.pk is None or (saved and instance._state.adding):
        raise InvalidValue(f"{instance!r} is not saved. Save it before it signs in.")
    return instance.pk


def offset(day: date) -> int:
    """Return the offset of a day in its year, from 0."""
    return day.timetuple().tm_yday - 1


class Summary(NamedTuple):
    """Figures of a user without a look at single days. ``first`` is the day of the first sign-in, or None."""

    streak: int
    longest: int
    total: int
    first: date | None


class State(NamedTuple):
    """A stored state. Behind it is the zone of the latest sign-in at a time, not on a date.

    That is the number of seconds from UTC to the start of a day, and the zone's name.
    """

    last: int  # last day of the latest streak, with the frozen days behind it; 0 if there is none
    streak: int  # number of sign-ins of that streak
    longest: int  # of the longest streak
    total: int  # number of sign-ins
    first: int  # day of the first sign-in; 0 if there is none
    place: int  # in the bitmaps of days; -1 if there is none
    frozen: int  # latest frozen day; 0 if there is none
    before: int  # longest streak before the latest change
    token: bytes  # of the call that made it

    @classmethod
    def of(cls, stored: bytes | None) -> "State | None":
        """Return the state that is stored; None if there is none."""
        return cls(*STATE.unpack_from(stored)) if stored else None


def summarized(stored: bytes | None, today: date) -> Summary:
    """Return the summary of a stored state. A streak goes on up to the day after its last day."""
    state = State.of(stored)
    if state is None:
        return Summary(0, 0, 0, None)
    # After a journey to the west the last day may be tomorrow.
    streak = state.streak if state.last >= today.toordinal() - 1 else 0
    return Summary(streak, state.longest, state.total, date.fromordinal(state.first) if state.first else None)


def days_with_kinds(years: Iterable[int], stored: Iterable[bytes | None]) -> Iterator[tuple[date, str]]:
    """Yield the days of some years in their order, each with what it was: sign_in, make_up or freeze."""
    for year, bitmap in zip(years, stored, strict=True):
        whole = bitmap or b""
        signed, covered = set(_days(year, whole[:BYTES])), set(_days(year, whole[BYTES:]))
        for day in sorted(signed | covered):
            yield day, "freeze" if day not in signed else "make_up" if day in covered else "sign_in"


def _days(year: int, bitmap: bytes) -> Iterator[date]:
    first, last = date(year, 1, 1), date(year, 12, 31)
    bits = "".join(f"{byte:08b}" for byte in bitmap)
    days = (first + timedelta(at) for at, bit in enumerate(bits) if bit == "1")
    return (day for day in days if day <= last)


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
        covered = set(_days(year, behind))
        is_covered = [first + timedelta(at) in covered for at in range(length)]
        return Calendar(year, month, _bits_of(marks, length), today, is_covered)

    def week(self, first: date) -> Flow[list[bool]]:
        """Return for seven days from the first on whether there was a sign-in."""
        rest = (date(first.year, 12, 31) - first).days + 1
        calls = [self._slice(first, min(WEEK, rest))]
        if rest < WEEK:
            calls.append(self._slice(date(first.year + 1, 1, 1), WEEK - rest))
        lengths = [min(WEEK, rest), WEEK - rest]
        replies = yield Batch(calls)
        return [bit for (bits,), length in zip(replies, lengths, strict=False) for bit in _bits_of(bits, length)]

    def _slice(self, first: date, length: int) -> Call:
        return Call("BITFIELD_RO", self.year_key(first.year), "GET", f"u{length}", offset(first))


def _bits_of(number: int, length: int) -> list[bool]:
    return [bit == "1" for bit in f"{number:0{length}b}"]


def _years(start: date, end: date) -> Iterator[tuple[int, int, int]]:
    """Yield each year of a range with the offsets of its first and its last day there."""
    if end < start:
        raise InvalidValue(f"start and end are {start} and {end}; a range must not end before it starts.")
    first, last = max(start, FIRST), min(end, date(date.today().year + 1, 12, 31))
    for year in range(first.year, last.year + 1):
        yield year, offset(max(first, date(year, 1, 1))), offset(min(last, date(year, 12, 31)))
