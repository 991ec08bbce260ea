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
from redis_kit.locks.leases.lease import ExtendMode, Lease

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
        self.levels, self.weight = levels, levels[-1].weight
        self._own: SlotKeys | None = None
        suffix = "" if self.weight == 1 else f" {self.weight}"
        self._parts = [(f" {level.limit}{suffix}", level.member) for level in levels]
        self._weight = (self.weight,) if suffix else ()
        self._about = f"{','.join(str(level.limit) for level in levels)} {self.weight}"

    def keys(self) -> "Levels":
        """Return itself, with the keys for the present prefix."""
        if (own := self.levels[-1].keys()) is not self._own:
            each = [level.keys() for level in self.levels]
            first = each[0]
            self.live, self.lease = first.live, first.lease
            self.signals = tuple(keys.signal for keys in each)
            self.acquire = tuple(key for keys in each for key in _level_keys(keys))
            self.statistics = first.waited, first.waits
            self.acquire_after_wait = (*self.acquire, *self.signals, *self.statistics)
            self.fair = _fair_keys(first)
            self.release = tuple(key for keys in each for key in _released_level(keys))
            self.extend = tuple(key for keys in each for key in _extended_level(keys))
            self._own = own
        return self

    def arguments(self, token: str) -> tuple[Argument, ...]:
        """Return of each level the entry of a token among the holders, and the member; then a weight other than 1."""
        return (*[value for end, member in self._parts for value in (token + end, member)], *self._weight)

    def about(self, ttl_ms: int) -> bytes:
        """Return what is stored of a lease before its holder."""
        return f"{self._about} {ttl_ms} ".encode()


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


def acquire(levels: Levels, attempt: Attempt) -> ScriptCall:
    """Return the step that acquires slots of all levels or of none."""
    levels.keys()
    keys = levels.acquire_after_wait if attempt.waiting_since else levels.acquire
    args: tuple[Argument, ...] = (
        levels.about(attempt.ttl_ms) + describe_caller(ahead=6),
        attempt.ttl_ms,
        _request(attempt),
        *levels.arguments(attempt.token),
    )
    return ACQUIRE((levels.live, f"{levels.lease}:{attempt.token}", *keys), args)


def release(levels: Levels, token: str, *, unsure: bool = False, fair: bool = False) -> ScriptCall:
    """Return the step that releases them on all levels, or gives up a ticket. See LeaseSource."""
    keys, script = levels.keys(), RELEASE_FAIR if fair else RELEASE
    args = _release_arguments(levels, token, unsure)
    return script((keys.live, f"{keys.lease}:{token}", *(keys.fair if fair else keys.release)), args)


def extend(levels: Levels, token: str, ttl_ms: int, mode: ExtendMode) -> ScriptCall:
    """Return the step that extends the lease on all levels, fair or not."""
    keys = levels.keys().extend
    args = (ttl_ms, mode, MAX_TTL, *levels.arguments(token))
    return EXTEND((levels.live, f"{levels.lease}:{token}", *keys), args)


def set_limit(source: Slots, number: int | None) -> ScriptCall:
    """Return the step that sets the limit of one level."""
    keys = source.keys()
    return SET_LIMIT((keys.limit, keys.waiters, keys.signal), [_text(number)])


def acquire_fair(levels: Levels, attempt: Attempt) -> ScriptCall:
    """Return the step that acquires slots of one level in the order of its queue, or a ticket in it."""
    keys = levels.keys()
    args: tuple[Argument, ...] = (
        levels.about(attempt.ttl_ms) + describe_caller(ahead=6),
        attempt.ttl_ms,
        f"{_request(attempt)} {attempt.wake_up_list}",
        *levels.arguments(attempt.token),
    )
    if tickets := _local_tickets(attempt):
        args = (*args[:5], levels.weight, *tickets)
    statistics = keys.statistics if attempt.waiting_since else ()
    return ACQUIRE_FAIR((keys.live, f"{keys.lease}:{attempt.token}", *keys.fair, *statistics), args)


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
    if queue is None or attempt.woken or not attempt.waiting_since or now - _reported_at.get(queue, -math.inf) < REPEAT:
        return []
    _reported_at[queue] = now
    return attempt.local_tokens


def _release_arguments(levels: Levels, token: str, unsure: bool) -> tuple[Argument, ...]:
    args = levels.arguments(token)
    if not unsure:
        return args
    return (*args, 1) if levels.weight > 1 else (*args, 1, 1)


def _request(attempt: Attempt) -> str:
    return f"{attempt.waiter_ttl} {attempt.woken} {attempt.waiting_since}"


def _text(number: int | None) -> str | int:
    return "" if number is None else number
