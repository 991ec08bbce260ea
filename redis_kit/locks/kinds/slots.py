"""Slots, of which semaphores and fair locks are made: the keys and arguments of their scripts."""

from collections.abc import Callable, Sequence
from functools import cached_property
from operator import attrgetter
from time import monotonic
from typing import NamedTuple

from redis_kit.core import scripts
from redis_kit.core.flow import Flow
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.steps import Argument
from redis_kit.locks.acquiring.attempt import Attempt
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

KeyNames = Callable[[SlotKeys], Sequence[str]]

_acquired_keys = attrgetter("holders", "limits", "limit", "waiters")
_released_keys = attrgetter("holders", "limits", "waiters", "signal")
_extended_keys = attrgetter("holders", "limits")
_inspected_keys = attrgetter("holders", "limits", "limit", "waiters", "lease")
_fair_keys = attrgetter("holders", "limits", "limit", "waiters", "queue", "tickets")


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
    _level_keys: tuple[SlotKeys | None, dict[KeyNames, list[str]]] = None, {}

    @cached_property
    def levels(self) -> "tuple[SlotLock, ...]":
        """Return it and the semaphores that it is within, the outermost first. A fair one has one level."""
        return (self,)

    def acquire_step(self, attempt: Attempt) -> ScriptCall:
        """See BaseLock. It acquires slots of all levels or of none; if fair, in the order of the queue."""
        keys = self._script_keys(attempt.token, _fair_keys if self.fair else _acquired_keys)
        about = f"{self._stated} {attempt.ttl_ms} ".encode() + describe_caller(ahead=6)
        request = f"{attempt.waiter_ttl} {attempt.woken} {attempt.waiting_since}"
        if attempt.waiting_since:
            outermost = self.levels[0].keys()
            keys += [] if self.fair else [level.keys().signal for level in self.levels]
            keys += [outermost.waited, outermost.waits]
        if not self.fair:
            return ACQUIRE(keys, [about, attempt.ttl_ms, request, *self._slots(attempt.token)])
        args: list[Argument] = [about, attempt.ttl_ms, f"{request} {attempt.wake_up_list}"]
        args += self._slots(attempt.token)
        if tickets := _local_tickets(attempt):
            args[5:] = [self.weight, *tickets]
        return ACQUIRE_FAIR(keys, args)

    def release_step(self, token: str, *, unsure: bool = False) -> ScriptCall:
        """See BaseLock."""
        args = self._slots(token)
        if unsure:
            args += [1] if self._heavy else [1, 1]
        if self.fair:
            return RELEASE_FAIR(self._script_keys(token, _fair_keys), args)
        return RELEASE(self._script_keys(token, _released_keys), args)

    def extend_step(self, token: str, ttl_ms: int, mode: ExtendMode) -> ScriptCall:
        """See BaseLock."""
        args = [ttl_ms, mode, int(TIMEOUT[1] * 1000), *self._slots(token)]
        return EXTEND(self._script_keys(token, _extended_keys), args)

    @cached_property
    def _heavy(self) -> list[int]:
        return [] if self.weight == 1 else [self.weight]

    @cached_property
    def _stated(self) -> str:
        return f"{','.join(str(level.limit) for level in self.levels)} {self.weight}"

    @cached_property
    def _entries(self) -> list[tuple[str, str]]:
        weight = "".join(f" {weight}" for weight in self._heavy)
        return [(f" {level.limit}{weight}", level.member) for level in self.levels]

    def _slots(self, token: str) -> list[Argument]:
        """Return of each level the entry of a token among the holders, and the member; then a weight other than 1."""
        return [*[value for entry, member in self._entries for value in (token + entry, member)], *self._heavy]

    def _script_keys(self, token: str, names: KeyNames) -> list[str]:
        outermost = self.levels[0].keys()
        known, by_names = self._level_keys
        if known is not outermost:  # the prefix has changed
            by_names = {}
            self._level_keys = outermost, by_names
        if names not in by_names:
            by_names[names] = [key for level in self.levels for key in names(level.keys())]
        return [outermost.live, f"{outermost.lease}:{token}", *by_names[names]]

    def _used(self) -> Flow[int]:
        reply = yield inspect(self.keys(), 0)
        return int(reply[1])


def inspect(keys: SlotKeys, count: int) -> ScriptCall:
    """Return the step that reads the state of what is made of slots, and at most ``count`` of its leases."""
    return INSPECT(_inspected_keys(keys), [count])


def _local_tickets(attempt: Attempt) -> list[str]:
    """Return the tickets of this process for the same name, if it is time to tell the server that they still wait."""
    queue, now = attempt.local_queue, monotonic()
    if queue is None or attempt.woken or not attempt.waiting_since or now - queue.reported_at < REPEAT:
        return []
    queue.reported_at = now
    return queue.tokens()
