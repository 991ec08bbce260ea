"""Slots, of which semaphores and fair locks are made: the keys and arguments of their scripts."""

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from operator import attrgetter
from time import monotonic
from typing import NamedTuple, Protocol
from weakref import WeakKeyDictionary

from redis_kit.core import scripts
from redis_kit.core.flow import Flow
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.steps import Argument
from redis_kit.locks.acquiring.attempt import Attempt
from redis_kit.locks.acquiring.local_queue import LocalQueue
from redis_kit.locks.arguments import TIMEOUT
from redis_kit.locks.holders.holder import Holder, describe_caller, parse_slot
from redis_kit.locks.keys import SlotKeys
from redis_kit.locks.kinds.base import BaseLock
from redis_kit.locks.leases.lease import ExtendMode

ACQUIRE = scripts.load("redis_kit.locks", "acquire_slot")
ACQUIRE_FAIR = scripts.load("redis_kit.locks", "acquire_fair_slot")
RELEASE = scripts.load("redis_kit.locks", "release_slot")
RELEASE_FAIR = scripts.load("redis_kit.locks", "release_fair_slot")
EXTEND = scripts.load("redis_kit.locks", "extend_slot")
INSPECT = scripts.load("redis_kit.locks", "inspect_slots")

REPEAT = 0.5  # seconds after which a process tells again that its waiters are there, when it sends a request anyway

_reported_at: WeakKeyDictionary[LocalQueue, float] = WeakKeyDictionary()

_acquired_keys = attrgetter("holders", "limits", "limit", "waiters")
_released_keys = attrgetter("holders", "limits", "waiters", "signal")
_extended_keys = attrgetter("holders", "limits")
_inspected_keys = attrgetter("holders", "limits", "limit", "waiters", "lease")
_fair_keys = attrgetter("holders", "limits", "limit", "waiters", "queue", "tickets")


class Slots(Protocol):
    """A number of slots, and how many of them a lease takes."""

    member: str
    limit: int
    weight: int

    def keys(self) -> SlotKeys:
        """Return its keys."""


class Levels:
    """A semaphore and those that it is within, the outermost first, as scripts take them. Fair ones have one level."""

    def __init__(self, levels: Sequence[Slots], *, fair: bool) -> None:
        self.levels, self.fair, self.weight = levels, fair, levels[-1].weight
        suffix = "" if self.weight == 1 else f" {self.weight}"
        self._parts = [(f" {level.limit}{suffix}", level.member) for level in levels]
        self._weight = (self.weight,) if suffix else ()
        self._about = f"{','.join(str(level.limit) for level in levels)} {self.weight}"

    def acquire(self, attempt: Attempt) -> ScriptCall:
        """Return the step that acquires slots of all levels or of none; if fair, in the order of the queue."""
        keys = self._keys(attempt.token, _fair_keys if self.fair else _acquired_keys)
        about = f"{self._about} {attempt.ttl_ms} ".encode() + describe_caller(ahead=6)
        request = f"{attempt.waiter_ttl} {attempt.woken} {attempt.waiting_since}"
        if attempt.waiting_since:
            outermost = self.levels[0].keys()
            keys += [] if self.fair else [level.keys().signal for level in self.levels]
            keys += [outermost.waited, outermost.waits]
        if not self.fair:
            return ACQUIRE(keys, [about, attempt.ttl_ms, request, *self.arguments(attempt.token)])
        args: list[Argument] = [about, attempt.ttl_ms, f"{request} {attempt.wake_up_list}"]
        args += self.arguments(attempt.token)
        if tickets := _local_tickets(attempt):
            args[5:] = [self.weight, *tickets]
        return ACQUIRE_FAIR(keys, args)

    def release(self, token: str, *, unsure: bool) -> ScriptCall:
        """Return the step that releases them on all levels, or gives up a ticket. See BaseLock.release_step()."""
        args = self.arguments(token)
        if unsure:
            args = (*args, 1) if self._weight else (*args, 1, 1)
        if self.fair:
            return RELEASE_FAIR(self._keys(token, _fair_keys), args)
        return RELEASE(self._keys(token, _released_keys), args)

    def extend(self, token: str, ttl_ms: int, mode: ExtendMode) -> ScriptCall:
        """Return the step that extends the lease on all levels."""
        return EXTEND(self._keys(token, _extended_keys), [ttl_ms, mode, int(TIMEOUT[1] * 1000), *self.arguments(token)])

    def arguments(self, token: str) -> tuple[Argument, ...]:
        """Return of each level the entry of a token among the holders, and the member; then a weight other than 1."""
        return (*[value for end, member in self._parts for value in (token + end, member)], *self._weight)

    def _keys(self, token: str, keys_of: Callable[[SlotKeys], Sequence[str]]) -> list[str]:
        outermost = self.levels[0].keys()
        return [
            outermost.live,
            f"{outermost.lease}:{token}",
            *[key for level in self.levels for key in keys_of(level.keys())],
        ]


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


class SlotLock(BaseLock[SlotKeys]):
    """Base of semaphores, and of locks that are made of slots."""

    key_names = SlotKeys
    limit = 1
    weight = 1

    @cached_property
    def levels(self) -> "tuple[SlotLock, ...]":
        """Return it and the semaphores that it is within, the outermost first."""
        return (self,)

    @cached_property
    def _scripts(self) -> Levels:
        return Levels(self.levels, fair=self.fair)

    def acquire_step(self, attempt: Attempt) -> ScriptCall:
        """See BaseLock."""
        return self._scripts.acquire(attempt)

    def release_step(self, token: str, *, unsure: bool = False) -> ScriptCall:
        """See BaseLock."""
        return self._scripts.release(token, unsure=unsure)

    def extend_step(self, token: str, ttl_ms: int, mode: ExtendMode) -> ScriptCall:
        """See BaseLock."""
        return self._scripts.extend(token, ttl_ms, mode)

    def _used(self) -> Flow[int]:
        reply = yield inspect(self.keys(), 0)
        return int(reply[1])


def inspect(keys: SlotKeys, count: int) -> ScriptCall:
    """Return the step that reads the state of what is made of slots, and at most ``count`` of its leases."""
    return INSPECT(_inspected_keys(keys), [count])


def _local_tickets(attempt: Attempt) -> list[str]:
    """Return the tickets of this process for the same name, if it is time to tell the server that they still wait."""
    queue, now = attempt.local_queue, monotonic()
    if queue is None or attempt.woken or not attempt.waiting_since or now - _reported_at.get(queue, -math.inf) < REPEAT:
        return []
    _reported_at[queue] = now
    return queue.tokens()
