"""Sign-ins, make-ups and freezes of one user."""

import struct
from datetime import date, timedelta
from itertools import pairwise
from secrets import token_hex
from typing import Literal, NamedTuple

from redis_kit.core import conf, scripts
from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow
from redis_kit.core.keys import hashed
from redis_kit.core.steps import Argument, Batch, Call, repeated
from redis_kit.signins import keys
from redis_kit.signins.calendar import month_length
from redis_kit.signins.days import FIRST, Moment, today
from redis_kit.signins.errors import NoneLeft
from redis_kit.signins.settings import SignInSettings
from redis_kit.signins.users.base import SignInUser, State, offset

SIGN_IN = scripts.load("redis_kit.signins", "sign_in")
FILL_IN = scripts.load("redis_kit.signins", "fill_in")
ANSWER = struct.Struct("<IIIII")
Kind = Literal["sign_in", "make_up", "freeze"]


class SignIn(NamedTuple):
    """The result of a sign-in: ``streak`` is the length of the streak around it, ``milestones`` are newly reached."""

    new: bool
    streak: int
    longest: int
    total: int
    milestones: list[int]
    day: date


class Changes(SignInUser):
    """Changes of the days of one user. Each is a flow with a token: a repeated one returns the same answer."""

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

    def make_up(self, day: date, today: date, token: str = "") -> Flow[SignIn]:
        """Record a sign-in on a missed day. Raises NoneLeft, and InvalidValue for a day outside ``WINDOW``."""
        window = conf.section(SignInSettings).WINDOW
        earliest, latest = max(today - timedelta(window), FIRST), today - timedelta(1)
        if not earliest <= day <= latest:
            raise InvalidValue(f"day is {day}; only missed days from {earliest} to {latest} can be made up.")
        return (yield from self._fill_in(Moment(day, "", 0), "make_up", _token(token)))

    def freeze(self, day: date, today: date, token: str = "") -> Flow[SignIn]:
        """Freeze a day, over which streaks continue. Raises NoneLeft, and InvalidValue for a day outside ``WINDOW``."""
        window = timedelta(conf.section(SignInSettings).WINDOW)
        earliest, latest = max(today - window, FIRST), today + window
        if not earliest <= day <= latest:
            raise InvalidValue(f"day is {day}; only days from {earliest} to {latest} can be frozen.")
        return (yield from self._fill_in(Moment(day, "", 0), "freeze", _token(token)))

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
