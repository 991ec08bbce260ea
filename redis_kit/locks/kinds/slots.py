"""Slots, the parts of semaphores and fair locks: the keys and arguments of their scripts."""

import math
from collections.abc import Sequence
from operator import attrgetter
from time import monotonic
from typing import NamedTuple, Protocol
from weakref import WeakKeyDictionary

from redis_kit.core import scripts
from redis_kit.core.flow import Flow
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.steps import Argument, Batch, Call
from redis_kit.locks.acquiring.attempt import Attempt
from redis_kit.locks.acquiring.local_queue import LocalQueue
from redis_kit.locks.arguments import TIMEOUT
from redis_kit.locks.holders.holder import Holder, describe_caller, parse_slot
from redis_kit.locks.keys import SlotKeys
from redis_kit.locks.leases.lease import Lease
from redis_kit.locks.leases.source import ExtendMode

ACQUIRE = scripts.load("redis_kit.locks", "acquire_slot")
ACQUIRE_FAIR = scripts.load("redis_kit.locks", "acquire_fair_slot")
RELEASE = scripts.load("redis_kit.locks", "release_slot")
RELEASE_FAIR = scripts.load("redis_kit.locks", "release_fair_slot")
EXTEND = scripts.load("redis_kit.locks", "extend_slot")
SET_LIMIT = scripts.load("redis_kit.locks", "set_limit")
SET_FAIR_LIMIT = scripts.load("redis_kit.locks", "set_fair_limit")
INSPECT = scripts.load("redis_kit.locks", "inspect_slots")

MAX_TTL = int(TIMEOUT[1] * 1000)
REPEAT = 0.5  # seconds after which a process tells again that its waiters are there, when it sends a request anyway

_reported_at: WeakKeyDictionary[LocalQueue, float] = WeakKeyDictionary()

_level_keys = attrgetter("holders", "limits", "limit", "waiters")
_released_level = attrgetter("holders", "limits", "waiters", "signal")
_extended_level = attrgetter("holders", "limits")
_fair_keys = attrgetter("holders", "limits", "limit", "waiters", "queue", "tickets")
_inspected_keys = attrgetter("holders", "limits", "limit", "waiters", "lease")


class Slots(Protocol):
    """A number of slots, and how many of them a lease takes."""

    member: str
    limit: int
    weight: int

    def keys(self) -> SlotKeys:
        """Return its keys."""


class Levels:
    """A semaphore and those that it is within, the outermost first: keys and arguments of its scripts, made once."""

    def __init__(self, levels: Sequence[Slots]) -> None:
        self.levels = levels
        self._own: SlotKeys | None = None
        self.members = tuple(level.member for level in levels)
        self.limits_and_members = tuple(value for level in levels for value in (level.limit, level.member))

    def keys(self) -> "Levels":
        """Return itself, with the keys for the present prefix."""
        if (own := self.levels[-1].keys()) is not self._own:
            each = [level.keys() for level in self.levels]
            first = each[0]
            self.live, self.lease = first.live, first.lease
            self.signals = tuple(keys.signal for keys in each)
            self.acquire = tuple(key for keys in each for key in _level_keys(keys))
            self.acquire_after_wait = (*self.acquire, *self.signals, first.waited, first.waits)
            self.release = tuple(key for keys in each for key in _released_level(keys))
            self.extend = tuple(key for keys in each for key in _extended_level(keys))
            self._own = own
        return self


class SlotRefusal(NamedTuple):
    """Why no slot was given. ``place`` is the level that is full, or the number of tickets before this one.

    The fields after it are about the lease that ends first. Times are in ms.
    """

    wait: int
    used: int
    limit: int
    place: int
    ends_in: int
    held_for: int
    about: bytes
    fence: int

    @property
    def holder(self) -> Holder | None:
        """Return the holder of the lease that ends first."""
        return parse_slot(self.about).holder if self.about else None


def acquire(levels: Levels, attempt: Attempt, weight: int) -> ScriptCall:
    """Return the step that acquires slots of all levels or of none."""
    levels.keys()
    keys = levels.acquire_after_wait if attempt.refused_at else levels.acquire
    args: tuple[Argument, ...] = (
        attempt.token,
        attempt.ttl_ms,
        weight,
        describe_caller(ahead=6),
        _request(attempt),
        *levels.limits_and_members,
    )
    return ACQUIRE((levels.live, f"{levels.lease}:{attempt.token}", *keys), args)


def release(levels: Levels, token: str) -> ScriptCall:
    """Return the step that releases them on all levels."""
    keys = levels.keys().release
    return RELEASE((levels.live, f"{levels.lease}:{token}", *keys), (token, *levels.members))


def extend(levels: Levels, token: str, ttl_ms: int, mode: ExtendMode) -> ScriptCall:
    """Return the step that extends the lease on all levels, fair or not."""
    keys = levels.keys().extend
    return EXTEND((levels.live, f"{levels.lease}:{token}", *keys), (token, ttl_ms, mode, MAX_TTL, *levels.members))


def set_limit(source: Slots, number: int | None) -> ScriptCall:
    """Return the step that sets the limit of one level."""
    keys = source.keys()
    return SET_LIMIT((keys.limit, keys.waiters, keys.signal), [_text(number)])


def acquire_fair(source: Slots, attempt: Attempt) -> ScriptCall:
    """Return the step that acquires slots in the order of the queue, or a ticket in it."""
    keys = source.keys()
    args: tuple[Argument, ...] = (
        attempt.token,
        attempt.ttl_ms,
        source.weight,
        describe_caller(ahead=6),
        f"{_request(attempt)} {attempt.wake_up_list}",
        source.limit,
        source.member,
        *_local_tickets(attempt),
    )
    statistics = (keys.waited, keys.waits) if attempt.refused_at else ()
    return ACQUIRE_FAIR((keys.live, f"{keys.lease}:{attempt.token}", *_fair_keys(keys), *statistics), args)


def release_fair(source: Slots, token: str) -> ScriptCall:
    """Return the step that releases slots or gives up a ticket."""
    keys = source.keys()
    return RELEASE_FAIR((keys.live, f"{keys.lease}:{token}", *_fair_keys(keys)), (token, source.member, source.limit))


def set_fair_limit(source: Slots, number: int | None) -> ScriptCall:
    """Return the step that sets the limit."""
    return SET_FAIR_LIMIT(_fair_keys(source.keys()), [_text(number), source.limit])


def inspect(keys: SlotKeys, count: int) -> ScriptCall:
    """Return the step that reads a semaphore's state and at most ``count`` of its leases."""
    return INSPECT(_inspected_keys(keys), [count])


def used(source: Slots) -> Flow[int]:
    """Return how many slots are in use."""
    reply = yield inspect(source.keys(), 0)
    count: int = reply[1]
    return count


def is_owned(source: Slots, lease: Lease | None) -> Flow[bool]:
    """Tell whether the server knows a lease."""
    if lease is None:
        return False
    keys = source.keys()
    return bool((yield Call("EXISTS", f"{keys.lease}:{lease.token}")))


def position(source: Slots, tickets: Sequence[str]) -> Flow[int | None]:
    """Return the position in the queue of the first of some tickets: 1 comes next, None if none is in it."""
    queue = source.keys().queue
    ranks = (yield Batch([Call("ZRANK", queue, ticket) for ticket in tickets])) if tickets else ()
    return min((rank + 1 for rank in ranks if rank is not None), default=None)


def _local_tickets(attempt: Attempt) -> list[str]:
    """Return the tickets of this process for the same name, if it is time to tell the server that they still wait."""
    queue, now = attempt.local_queue, monotonic()
    if queue is None or attempt.woken or not attempt.refused_at or now - _reported_at.get(queue, -math.inf) < REPEAT:
        return []
    _reported_at[queue] = now
    return attempt.local_tokens


def _request(attempt: Attempt) -> str:
    return f"{attempt.waiter_ttl} {attempt.woken} {attempt.refused_at}"


def _text(number: int | None) -> str | int:
    return "" if number is None else number
