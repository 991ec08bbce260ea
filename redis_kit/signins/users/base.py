"""A user: its keys, its state, and questions about its days."""

import struct
from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from typing import Any, NamedTuple, Self

from django.db.models import Model

from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow
from redis_kit.core.keys import bucket_of, encode
from redis_kit.core.steps import Batch, Call
from redis_kit.signins import keys

STATE = struct.Struct("<IIIIIiII8s")
BYTES = 46


class SignInUser:
    """One instance of a model, as it is stored: a bitmap per year with the day of the year as offset, and its state.

    The bitmaps are those of "Redis Deep Adventure" by Qian Wenpin, one for each year in place of one for all.
    """

    def __init__(self, model: Any, pk: Any) -> None:
        self.pk, self.id = pk, str(pk)
        self.member = keys.member_of(self.id)
        self.tag = keys.tag(encode(keys.label(model)), bucket_of(self.member))

    @classmethod
    def of(cls, instance: Any, *, saved: bool = True) -> Self:
        """Return the user of an instance. Raises InvalidValue without a key, and unless it is saved if it must be."""
        if not isinstance(instance, Model):
            raise InvalidValue(f"{instance!r} is not an instance of a model.")
        if instance.pk is None or (saved and instance._state.adding):
            raise InvalidValue(f"{instance!r} is not saved. Save it before it signs in.")
        return cls(type(instance), instance.pk)

    def state_key(self) -> str:
        """Return the key of the state."""
        return keys.user(self.tag, self.member)

    def year_key(self, year: int) -> str:
        """Return the key of a year's bitmap."""
        return keys.year(self.tag, self.member, year)


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
        signed, covered = set(days_in(year, whole[:BYTES])), set(days_in(year, whole[BYTES:]))
        for day in sorted(signed | covered):
            yield day, "freeze" if day not in signed else "make_up" if day in covered else "sign_in"


def days_in(year: int, bitmap: bytes) -> Iterator[date]:
    """Yield the days of a year whose bits are set."""
    first, last = date(year, 1, 1), date(year, 12, 31)
    bits = "".join(f"{byte:08b}" for byte in bitmap)
    days = (first + timedelta(at) for at, bit in enumerate(bits) if bit == "1")
    return (day for day in days if day <= last)


def overview(user: SignInUser, start: date, end: date) -> Flow[tuple[Summary, list[tuple[date, str]]]]:
    """Return the summary on the last day, and the days from start to end, both included, with their kinds."""
    years = range(start.year, end.year + 1)
    state, *bitmaps = yield Batch([Call("GET", key) for key in (user.state_key(), *map(user.year_key, years))])
    days = [(day, kind) for day, kind in days_with_kinds(years, bitmaps) if start <= day <= end]
    return summarized(state, end), days
