"""Slots: what semaphores are made of, and locks that keep an order. Which keys and arguments their scripts take."""

import math
from collections.abc import Sequence
from operator import itemgetter
from time import monotonic
from typing import NamedTuple, Protocol
from weakref import WeakKeyDictionary

from redis_kit.core import scripts
from redis_kit.core.flow import Flow
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.steps import Argument, Batch, Call
from redis_kit.locks.acquiring.local_queue import Line
from redis_kit.locks.acquiring.wait import Attempt
from redis_kit.locks.arguments import LEASE
from redis_kit.locks.holders.holder import Holder, of_slot, who
from redis_kit.locks.leases.lease import Lease

TAKE = scripts.load("redis_kit.locks", "take_slot")
TAKE_FAIR = scripts.load("redis_kit.locks", "take_fair_slot")
GIVE_BACK = scripts.load("redis_kit.locks", "give_back_slot")
GIVE_BACK_FAIR = scripts.load("redis_kit.locks", "give_back_fair_slot")
REFRESH = scripts.load("redis_kit.locks", "refresh_slot")
SET_LIMIT = scripts.load("redis_kit.locks", "set_limit")
SET_FAIR_LIMIT = scripts.load("redis_kit.locks", "set_fair_limit")
LOOK = scripts.load("redis_kit.locks", "look_at_slots")

PARTS = ("holders", "about", "weights", "limits", "limit", "waiters", "signal", "queue", "tickets")
MOST = int(LEASE[1] * 1000)
TELL = 0.5  # seconds after which a process says again that its waiters are there, if it asks anyway

_told: WeakKeyDictionary[Line, float] = WeakKeyDictionary()

# Places among the keys of a source, of which the first four belong to its bucket.
_LIVE, _HOLDERS, _LIMIT, _WAITERS, _SIGNAL, _QUEUE = 1, 4, 8, 9, 10, 11
_given_back = itemgetter(4, 5, 6, 7, 9, 10)
_given_back_fair, _limited_fair = itemgetter(1, 4, 5, 6, 7, 8, 9, 11, 12), itemgetter(4, 6, 7, 8, 9, 11, 12)


class Slots(Protocol):
    """A number of slots, and how many of them a lease takes."""

    member: str
    limit: int
    weight: int

    def _keys(self) -> tuple[str, ...]: ...


class Levels:
    """A semaphore and those that it is within, the outermost first: what their scripts are given, made once."""

    def __init__(self, every: Sequence[Slots]) -> None:
        self.every = every
        self._own: tuple[str, ...] = ()
        self.members = tuple(level.member for level in every)
        self.limits = tuple(f"{level.limit} {level.member}" for level in every)

    def keys(self) -> "Levels":
        """Return itself, with the keys for the prefix of now."""
        if (own := self.every[-1]._keys()) is not self._own:
            named = [level._keys() for level in self.every]
            fence, live, *contention = named[0][:4]
            self.signals = tuple(one[_SIGNAL] for one in named)
            self.taken = (fence, live, *(key for one in named for key in one[_HOLDERS:_SIGNAL]))
            self.waited = (*self.taken, *self.signals, *contention)
            self.given_back = (live, *(key for one in named for key in _given_back(one)))
            self.refreshed = (live, *(key for one in named for key in one[_HOLDERS:_LIMIT]))
            self._own = own
        return self


class Full(NamedTuple):
    """Why no slot was given. ``place`` is the level that is full, or the number of those before in the queue.

    What follows it is about the lease that ends first. Times are in ms.
    """

    wait: int
    used: int
    limit: int
    place: int
    left: int
    held_for: int
    about: bytes
    fence: int

    @property
    def holder(self) -> Holder | None:
        """Return who has the lease that ends first."""
        return of_slot(self.about).holder if self.about else None


def take(levels: Levels, attempt: Attempt, weight: int) -> ScriptCall:
    """Return the step that takes slots of all levels or of none."""
    levels.keys()
    asked = f"{attempt.ttl} {attempt.waiting} {attempt.woken} {attempt.since} {weight}"
    told: tuple[Argument, ...] = (attempt.token, asked, who(ahead=6), *levels.limits)
    return TAKE(levels.waited if attempt.since else levels.taken, told)


def give_back(levels: Levels, token: str) -> ScriptCall:
    """Return the step that gives them back on all levels."""
    return GIVE_BACK(levels.keys().given_back, (token, *levels.members))


def refresh(levels: Levels, token: str, more: int, how: int) -> ScriptCall:
    """Return the step that makes the lease longer on all levels, fair or not."""
    return REFRESH(levels.keys().refreshed, (token, more, how, MOST, *levels.limits))


def set_limit(source: Slots, number: int | None) -> ScriptCall:
    """Return the step that sets the limit of one level."""
    keys = source._keys()
    return SET_LIMIT((keys[_LIMIT], keys[_WAITERS], keys[_SIGNAL]), [_text(number)])


def take_fair(source: Slots, attempt: Attempt) -> ScriptCall:
    """Return the step that takes slots in the order of the queue, or a place in it."""
    keys = source._keys()
    told: tuple[Argument, ...] = (attempt.token, attempt.ttl, who(ahead=6), attempt.waiting, attempt.woken)
    told += attempt.since, source.weight, source.limit, source.member, attempt.wake
    contention = keys[2:4] if attempt.since else ()
    return TAKE_FAIR(keys[:2] + keys[_HOLDERS:_SIGNAL] + keys[_QUEUE:] + contention, (*told, *_mates(attempt)))


def give_back_fair(source: Slots, token: str) -> ScriptCall:
    """Return the step that gives slots or a place in the queue back."""
    return GIVE_BACK_FAIR(_given_back_fair(source._keys()), [token, source.member, source.limit])


def set_fair_limit(source: Slots, number: int | None) -> ScriptCall:
    """Return the step that sets the limit."""
    return SET_FAIR_LIMIT(_limited_fair(source._keys()), [_text(number), source.limit])


def used(source: Slots) -> Flow[int]:
    """Return how many slots are in use."""
    reply = yield _look(source)
    count: int = reply[1]
    return count


def is_owned(source: Slots, lease: Lease | None) -> Flow[bool]:
    """Tell whether the server knows a lease."""
    if lease is None:
        return False
    seen, ends = yield Batch([_look(source), Call("ZSCORE", source._keys()[_HOLDERS], lease.token)])
    return bool(ends) and float(ends) > float(seen[0])


def place(source: Slots, tickets: Sequence[str]) -> Flow[int | None]:
    """Return the place in the queue of the first of some tickets: 1 comes next, None where none is in it."""
    ranks = (yield Batch([Call("ZRANK", source._keys()[_QUEUE], one) for one in tickets])) if tickets else ()
    return min((rank + 1 for rank in ranks if rank is not None), default=None)


def _mates(attempt: Attempt) -> list[str]:
    """Return those of this process who wait for the same, if it is time to tell the server that they still do."""
    line, now = attempt.line, monotonic()
    if line is None or attempt.woken or not attempt.since or now - _told.get(line, -math.inf) < TELL:
        return []
    _told[line] = now
    return attempt.mates


def _look(source: Slots) -> ScriptCall:
    return LOOK(source._keys()[_HOLDERS:_SIGNAL], [0])


def _text(number: int | None) -> str | int:
    return "" if number is None else number
