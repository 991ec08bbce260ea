"""The base of what reads and changes a user: its keys."""

import struct
from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from typing import Any, NamedTuple

from redis_kit.core import conf
from redis_kit.core.errors import InvalidValue
from redis_kit.core.keys import bucket_of
from redis_kit.core.primitive import Primitive
from redis_kit.signins import keys
from redis_kit.signins.settings import SignInSettings

STATE = struct.Struct("<IIIIIiII8s")
BYTES = 46


class SignInUser(Primitive):
    """One instance of a model, as it is stored: a bitmap per year with the day of the year as offset, and its state.

    The bitmaps are those of "Redis Deep Adventure" by Qian Wenpin, one for each year in place of one for all.
    """

    component, settings = "signins", SignInSettings

    def __init__(self, model: Any, pk: Any) -> None:
        super().__init__(keys.label(model), using=conf.section(SignInSettings).USING)
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
    """A stored state without its zone; see scripts/_state.lua."""

    last: int
    streak: int
    longest: int
    total: int
    first: int
    place: int
    frozen: int
    before: int
    token: bytes

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


def signed_days(year: int, stored: bytes) -> list[date]:
    """Return the days of a year with a sign-in."""
    return list(_days(year, stored[:BYTES]))


def covered_days(year: int, behind: bytes) -> set[date]:
    """Return the covered days of a year, given what is behind its sign-ins."""
    return set(_days(year, behind))


def days_with_kinds(years: Iterable[int], stored: Iterable[bytes | None]) -> Iterator[tuple[date, str]]:
    """Yield the days of some years in their order, each with what it was: sign_in, make_up or freeze."""
    for year, bitmap in zip(years, stored, strict=True):
        signed, covered = set(signed_days(year, bitmap or b"")), covered_days(year, (bitmap or b"")[BYTES:])
        for day in sorted(signed | covered):
            yield day, "freeze" if day not in signed else "make_up" if day in covered else "sign_in"


def _days(year: int, bitmap: bytes) -> Iterator[date]:
    first, last = date(year, 1, 1), date(year, 12, 31)
    days = (first + timedelta(at) for at, bit in enumerate(_bits(bitmap)) if bit == "1")
    return (day for day in days if day <= last)


def _bits(stored: bytes) -> str:
    return "".join(f"{byte:08b}" for byte in stored)
