"""A semaphore: a limited number of holders at a time, in every process. Fair locks are made of its slots, too."""

from collections import deque
from collections.abc import Callable, Sequence
from functools import cached_property
from operator import attrgetter
from time import monotonic
from typing import Any, NamedTuple, Unpack

from redis_kit.core import scripts
from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow, operation, twin
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.steps import Argument, Batch, Call
from redis_kit.core.text import shortened
from redis_kit.core.values.numbers import whole_number
from redis_kit.locks.acquiring.wait import Attempt, Refusal
from redis_kit.locks.arguments import LIMIT, TIMEOUT, LeaseOptions, Seconds, flag
from redis_kit.locks.errors import LockNotAcquired
from redis_kit.locks.keys import LockKeys
from redis_kit.locks.kinds.base import BaseLock
from redis_kit.locks.leases.holder import Holder, describe_caller, parse_slot
from redis_kit.locks.leases.lease import ExtendMode

ACQUIRE = scripts.load("redis_kit.locks", "acquire_slot")
ACQUIRE_FAIR = scripts.load("redis_kit.locks", "acquire_fair_slot")
RELEASE = scripts.load("redis_kit.locks", "release_slot")
EXTEND = scripts.load("redis_kit.locks", "extend_slot")
SET_LIMIT = scripts.load("redis_kit.locks", "set_limit")
INSPECT = scripts.load("redis_kit.locks", "inspect_slots")

REPEAT = 0.5  # seconds after which a process tells again that its waiters are there, when it sends a request anyway

KeyNames = Callable[[LockKeys], Sequence[str]]

_acquired_keys = attrgetter("holders", "limits", "limit", "waiters")
_released_keys = attrgetter("holders", "limits", "waiters", "signal")
_released_fair_keys = attrgetter("holders", "limits", "waiters", "limit", "queue", "tickets")
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


class SlotLock(BaseLock):
    """Base of semaphores, and of locks that are made of slots."""

    limit = 1
    weight = 1
    _level_keys: tuple[LockKeys | None, dict[KeyNames, list[str]]] = None, {}

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
        return RELEASE(self._script_keys(token, _released_fair_keys if self.fair else _released_keys), args)

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
        reply = yield inspect_slots(self.keys(), 0)
        return int(reply[1])


def inspect_slots(keys: LockKeys, count: int) -> ScriptCall:
    """Return the step that reads the state of what is made of slots, and at most ``count`` of its leases."""
    return INSPECT(_inspected_keys(keys), [count])


def _local_tickets(attempt: Attempt) -> list[str]:
    """Return the tickets of this process for the same name, if it is time to tell the server that they still wait."""
    queue, now = attempt.local_queue, monotonic()
    if queue is None or attempt.woken or not attempt.waiting_since or now - queue.reported_at < REPEAT:
        return []
    queue.reported_at = now
    return queue.tokens()


class Semaphore(SlotLock):
    """At most ``limit`` slots in use (1 to 1,000,000), each for ``timeout`` seconds (0.1 s to 24 h) unless extended.

    A lease takes ``weight`` slots (1 to the limit); a thread or task may have several leases. The slots of a dead
    holder are free again when its lease times out. If processes state different limits for one name, the smallest one
    in use counts; a limit set by ``set_limit()`` counts instead of all. ``within`` is a semaphore from which the same
    number of slots is acquired at the same time: from both or from none. With ``fair``, waiters are served in the
    order in which they came, by a number of the server; all users of a name must agree on that. Leases are stored in a
    sorted set on the server's clock ("Redis in Action", 6.3, without its dependence on clients' clocks).
    """

    kind = "semaphore"

    def __init__(
        self,
        name: str,
        limit: int,
        *,
        fair: bool = False,
        weight: int = 1,
        within: "Semaphore | None" = None,
        blocking: bool = True,
        blocking_timeout: Seconds | None = None,
        **options: Unpack[LeaseOptions],
    ) -> None:
        if options.get("reentrant"):
            raise InvalidValue("A Semaphore can't be reentrant: each lease takes slots of its own. A Lock can be.")
        super().__init__(name, blocking=blocking, blocking_timeout=blocking_timeout, **options)
        self.limit = whole_number("limit", limit, LIMIT)
        self.fair = flag("fair", fair)
        self.within = within
        self.levels = (self,) if within is None else (*self._checked_outer(within).levels, self)
        self.weight = whole_number("weight", weight, (1, min(level.limit for level in self.levels)))
        self._tickets: deque[str] = deque(maxlen=100)  # of the last callers that waited through this object

    def __repr__(self) -> str:
        return super().__repr__() if self.within is None else f"{super().__repr__()[:-1]} within {self.within.name!r}>"

    @operation
    def used(self) -> Flow[int]:
        """Return how many slots are in use. One round trip."""
        return self._used()

    @operation
    def set_limit(self, number: int | None) -> Flow[None]:
        """Override the limits that the code of all processes states, by 1 to 1,000,000; None ends the override.

        It takes effect at once and lasts until it is changed, even while no slot is held. Callers that wait notice a
        higher limit within a second. A lower one ends no lease, but admits no caller until enough slots are free. One
        round trip.
        """
        key = self.keys().limit
        if number is None:
            yield Call("DEL", key)
        else:
            yield SET_LIMIT([key], [whole_number("number", number, LIMIT)])

    @operation
    def position(self) -> Flow[int | None]:
        """Return the position in the queue of the first caller that waits through this object: 1 comes next.

        A dead waiter counts for up to 4 seconds. None if nobody waits, or if the semaphore is not fair. Of the callers
        through this object, only the last 100 are considered. One round trip.
        """
        queue, tickets = self.keys().queue, list(self._tickets)
        ranks = (yield Batch([Call("ZRANK", queue, ticket) for ticket in tickets])) if tickets else ()
        return min((rank + 1 for rank in ranks if rank is not None), default=None)

    aused = twin(used)
    aset_limit = twin(set_limit)
    aposition = twin(position)

    @property
    def local_key(self) -> str:
        """Return the key under which callers of this process wait for it: one for each weight, unless it is fair."""
        return super().local_key if self.fair or self.weight == 1 else f"{super().local_key} {self.weight}"

    def acquire_step(self, attempt: Attempt) -> ScriptCall:
        """See BaseLock."""
        if self.fair and attempt.waiter_ttl and attempt.token not in self._tickets:
            self._tickets.append(attempt.token)
        return super().acquire_step(attempt)

    def wake_up_list(self, refusal: Refusal, attempt: Attempt) -> str:
        """See BaseLock. Raises LockNotAcquired if it would wait for ever."""
        full = SlotRefusal(*refusal)
        if self.weight > full.limit:  # an operator or another process set it
            raise self.refusal_error(refusal)
        return attempt.wake_up_list if self.fair else self.levels[full.place - 1].keys().signal

    def _refusal_error(self, refusal: Refusal) -> LockNotAcquired:
        """See BaseLock."""
        full = SlotRefusal(*refusal)
        level = self if self.fair else self.levels[full.place - 1]
        text = f"{level!r} has {full.used} of {full.limit} slots in use"
        if self.weight > full.limit:
            text += f" and {self!r} takes {self.weight} at once, so it can never acquire them"
        elif full.holder:
            text += f"; the first ends in {full.ends_in / 1000:.1f} s at the latest, held by {full.holder.text}"
        if self.fair and full.place:
            text += f"; {full.place} came before and wait for it too"
        if full.limit < level.limit:
            text += f". Its limit is {level.limit} here and {full.limit} elsewhere; the smaller one counts"
        return LockNotAcquired(f"{text}.", self.name, full.holder.process_text if full.holder else "")

    def _checked_outer(self, within: Any) -> "Semaphore":
        if not isinstance(within, Semaphore):
            raise InvalidValue(f"within must be a Semaphore, not {shortened(within)}.")
        if self.fair or within.fair:
            raise InvalidValue(
                "fair=True can't be combined with within: two callers, each the first in one of the queues, "
                "would wait for each other."
            )
        if within.weight != 1 or within.using != self.using:
            raise InvalidValue(
                f"{within!r} must have the weight 1 and the connection {self.using!r} to be around another."
            )
        # One script acquires slots on all levels, so their keys have the tag of the outermost.
        self.member, self._tag = f"{within.member}:{self.encoded}", within.tag()
        return within
