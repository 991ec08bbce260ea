"""A user: its keys, its state, its days, and their changes."""

import struct
from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from itertools import pairwise
from secrets import token_hex
from typing import Any, Literal, NamedTuple, Self

from django.db.models import Model

from redis_kit.core import conf, scripts
from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow
from redis_kit.core.keys import bucket_of, encode, hashed
from redis_kit.core.steps import Argument, Batch, Call, repeated
from redis_kit.signins import keys
from redis_kit.signins.days import FIRST, Moment, month_length, today
from redis_kit.signins.errors import NoneLeft
from redis_kit.signins.settings import SignInSettings

SIGN_IN = scripts.load("redis_kit.signins", "sign_in")
FILL_IN = scripts.load("redis_kit.signins", "fill_in")
STATE, ANSWER = struct.Struct("<IIIIIiII8s"), struct.Struct("<IIIII")
BYTES = 46
Kind = Literal["sign_in", "make_up", "freeze"]


class SignIn(NamedTuple):
    """The result of a sign-in: ``streak`` is the length of the streak around it, ``milestones`` are newly reached."""

    new: bool
    streak: int
    longest: int
    total: int
    milestones: list[int]
    day: date


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


class SignInUser:
    """One instance of a model, as it is stored: a bitmap per year with the day of the year as offset, and its state.

    Each change is a flow with a token: a repeated one returns the same answer. The bitmaps are those of "Redis Deep
    Adventure" by Qian Wenpin, one for each year in place of one for all.
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

    def sign_in(self, moment: Moment, token: str = "") -> Flow[SignIn]:
        """Record a sign-in. One round trip; two or three if it is not after all other days."""
        day, tag, token = moment.day, self.tag, _token(token)
        named = [
            self.state_key(),
            keys.active(tag, day),
            keys.streaks(tag),
            self.year_key(day.year),
            keys.members(tag),
            keys.first(tag, day),
        ]
        args: list[Argument] = [day.toordinal(), offset(day), self.id, _ttl_ms(), token + moment.zone]
        state = State.of((yield from repeated(SIGN_IN(named, args))))
        if state is None:
            return (yield from self._fill_in(moment, "sign_in", token))
        new = state.token == token.encode()
        return _result(day, new, state.streak, state.longest, state.total, state.before if new else state.longest)

    def cover(self, kind: Literal["make_up", "freeze"], day: date, today: date, token: str = "") -> Flow[SignIn]:
        """Make a missed day up, or freeze a day. Raises NoneLeft, and InvalidValue for a day outside ``WINDOW``."""
        window, is_freeze = timedelta(conf.section(SignInSettings).WINDOW), kind == "freeze"
        earliest, latest = max(today - window, FIRST), today + (window if is_freeze else -timedelta(1))
        if not earliest <= day <= latest:
            days, done = ("days", "frozen") if is_freeze else ("missed days", "made up")
            raise InvalidValue(f"day is {day}; only {days} from {earliest} to {latest} can be {done}.")
        return (yield from self._fill_in(Moment(day, "", 0), kind, _token(token)))

    def _fill_in(self, moment: Moment, kind: Kind, token: str) -> Flow[SignIn]:
        day, tag, options = moment.day, self.tag, conf.section(SignInSettings)
        years, was = range(day.year - 1, day.year + 2), day
        most = {"make_up": options.MAKE_UPS, "freeze": options.FREEZES}.get(kind, 0)
        month = day.replace(day=1).toordinal()
        month_end = month + month_length(day.year, day.month) - 1
        while True:
            starts = [date(year, 1, 1).toordinal() for year in (*years, years.stop)]
            named = [
                self.state_key(),
                keys.active(tag, day),
                keys.streaks(tag),
                keys.members(tag),
                keys.first(tag, day),
                keys.first(tag, was),
                *map(self.year_key, years),
            ]
            args: list[Argument] = [day.toordinal(), starts[0], self.id, _ttl_ms(), token, moment.zone, moment.seconds]
            args += [was.toordinal(), kind, most, month, month_end]
            args += [end - start for start, end in pairwise(starts)]
            reply = yield from repeated(FILL_IN(named, args))
            if len(reply) == ANSWER.size:
                new, *figures = ANSWER.unpack(reply)
                return _result(day, bool(new), *figures)
            word, _, number = reply.partition(b" ")
            if word == b"used":
                what = "make-ups" if kind == "make_up" else "freezes"
                raise NoneLeft(f"The {what} of {day:%Y-%m} are used up: {most} in a month, by the settings.")
            if word == b"first":
                was = date.fromordinal(int(number))
            else:  # a year without sign-ins on each side ends every streak
                years = range(FIRST.year - 1, max(today().year, day.year) + 2)

    def erase(self) -> Flow[bool]:
        """Delete all that is stored about the user, and return whether there was anything. Two round trips."""
        state = State.of((yield Call("GET", self.state_key())))
        if state is None:
            return False
        tag, place = self.tag, state.place
        years = [self.year_key(year) for year in range(FIRST.year, today().year + 2)]
        calls = [Call("UNLINK", self.state_key(), *years)]
        if place >= 0:
            calls += [
                Call("LSET", keys.members(tag), place, ""),
                Call("SETBIT", keys.erased(tag), place, 1),
                Call("ZREM", keys.streaks(tag), place),
            ]
        yield Batch(calls)
        return True


def offset(day: date) -> int:
    """Return the offset of a day in its year, from 0."""
    return day.timetuple().tm_yday - 1


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


def _result(day: date, new: bool, streak: int, longest: int, total: int, before: int) -> SignIn:
    options = conf.section(SignInSettings)
    milestones = sorted(days for days in options.MILESTONES if before < days <= longest)
    return SignIn(new, streak, longest, total, milestones, day)


def _token(token: str) -> str:
    if token and not isinstance(token, str):
        raise InvalidValue(f"token must be text, not {type(token).__name__}.")
    return hashed(token)[:8] if token else token_hex(4)


def _ttl_ms() -> int:
    return int(conf.section(SignInSettings).RETENTION * 1000)
