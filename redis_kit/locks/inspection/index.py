"""The buckets over which locks and semaphores are spread, and their indexes, which are read without a key scan."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from redis_kit.core import scripts
from redis_kit.core.flow import Flow
from redis_kit.core.keys import BUCKETS
from redis_kit.core.primitive import Primitive
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.steps import Batch
from redis_kit.locks.holders import holder
from redis_kit.locks.keys import HeldName, LockKeys, SlotKeys, parts_of
from redis_kit.locks.kinds import slots
from redis_kit.locks.settings import LockSettings

LIST_HELD = scripts.load("redis_kit.locks", "list_held")
LIST_CONTENDED = scripts.load("redis_kit.locks", "list_contended")
INSPECT_LOCK = scripts.load("redis_kit.locks", "inspect_lock")
COUNT_WAITERS = scripts.load("redis_kit.locks", "count_waiters")

KINDS = ("lock", "fairlock", "rwlock", "semaphore")  # all but the first are built like a semaphore


class HeldLock(NamedTuple):
    """A lock that is held. Times are in seconds; ``timeout`` is that of its lease.

    ``kind`` is "lock" or "fairlock". ``holder``, ``location`` in its code and what it is ``doing`` are its own words.
    """

    name: str
    kind: str
    holder: str
    location: str
    doing: str
    held_for: float
    ends_in: float
    timeout: float
    fence: int
    waiters: int


class HeldSlot(NamedTuple):
    """A lease of a semaphore. Times are in seconds."""

    holder: str
    location: str
    doing: str
    held_for: float
    ends_in: float
    timeout: float
    weight: int
    fence: int


class HeldSemaphore(NamedTuple):
    """A semaphore with slots in use; its last lease ends in ``ends_in`` seconds.

    ``kind`` is "semaphore" or "rwlock". ``limit_is_set`` is True if an operator set the limit, instead of the code.
    ``holders`` are those whose leases end first, and not always all. ``within`` names the semaphores that it is
    within, the outermost first.
    """

    name: str
    kind: str
    used: int
    limit: int
    limit_is_set: bool
    ends_in: float
    waiters: int
    holders: list[HeldSlot]
    within: tuple[str, ...] = ()

    @property
    def writing(self) -> bool:
        """Tell whether it is a read/write lock that a writer holds."""
        return self.kind == "rwlock" and any(slot.weight > 1 for slot in self.holders)


class Contended(NamedTuple):
    """A lock or semaphore for which callers waited: how many did, and for how many seconds in all."""

    name: str
    kind: str
    waits: int
    waited: float
    within: tuple[str, ...] = ()


class Listed(NamedTuple):
    """Names in the order in which their leases end, how many there are in all, and those for which callers wait."""

    members: list[HeldName]
    total: int
    awaited: list[HeldName]


class Bucket(Primitive):
    """One of the 16 buckets. Its name is what stands in keys."""

    component, settings = "locks", LockSettings

    def slot_keys(self, member: HeldName) -> SlotKeys:
        """Return the keys of a member that is built of slots."""
        return SlotKeys(*map(self.key, parts_of(SlotKeys, member)))

    def inspect(self, member: HeldName, count: int) -> ScriptCall:
        """Return the step that reads the state of one member, and at most ``count`` of its leases."""
        if member.kind == "lock":
            lock_keys = LockKeys(*map(self.key, parts_of(LockKeys, member)))
            return INSPECT_LOCK([lock_keys.holder, lock_keys.waiters])
        return slots.inspect(self.slot_keys(member), count)

    def list_held(self, limit: int, *, waiting: int = 0) -> ScriptCall:
        """Return the step that lists what is held, and names with waiters."""
        return LIST_HELD([self.key("live")], [limit, waiting])


def bucket_of(member: HeldName, using: str) -> Bucket:
    """Return the bucket of a member."""
    return Bucket(member.bucket, using=using)


def over(using: str) -> Bucket:
    """Return what runs flows over all buckets."""
    return Bucket("0", using=using)


def all_buckets(using: str) -> list[Bucket]:
    """Return all buckets."""
    return [Bucket(name, using=using) for name in BUCKETS]


def held(limit: int, using: str, *, waiting: int = 0) -> Flow[Listed]:
    """Return at most ``limit`` of what is held, and at most ``waiting`` names of each bucket for which callers wait."""
    buckets = all_buckets(using)
    replies = yield Batch([bucket.list_held(limit, waiting=waiting) for bucket in buckets])
    by_end = sorted(pair for reply in replies for pair in members(reply))[:limit]
    awaited = [_member(stored.removeprefix(b"waits ")) for *_, names in replies for stored in names]
    return Listed([member for _, member in by_end], sum(count for _, count, *_ in replies), awaited)


def count_waiters(names: Sequence[HeldName], using: str) -> list[ScriptCall]:
    """Return the steps that count who waits for some names."""
    by_bucket: dict[str, list[str]] = {}
    for name in names:
        waiters = bucket_of(name, using).key(LockKeys(*parts_of(LockKeys, name)).waiters)
        by_bucket.setdefault(name.bucket, []).append(waiters)
    return [COUNT_WAITERS(keys) for keys in by_bucket.values()]


def contended(limit: int, using: str) -> Flow[list[Contended]]:
    """Return the locks and semaphores with the longest waits in all."""
    buckets = all_buckets(using)
    steps = [LIST_CONTENDED([bucket.key("waited"), bucket.key("waits")], [limit]) for bucket in buckets]
    replies = yield Batch(steps)
    result = []
    for reply in replies:
        for member, waited, waits in zip(reply[::3], reply[1::3], reply[2::3], strict=True):
            kind, (*within, name) = _member(member).kind, _member(member).names
            result.append(Contended(name, kind, int(float(waits)), float(waited) / 1000, tuple(within)))
    return sorted(result, key=lambda entry: (-entry.waited, entry.name))[:limit]


def parse(member: HeldName, reply: Any) -> HeldLock | HeldSemaphore | None:
    """Return the state of a member from the reply of an inspection; None if it is free by now."""
    kind, (*within, name) = member.kind, member.names
    if kind == "lock":
        return _lock(name, *reply)
    now, used, limit, is_set, waiters, last, _ = reply
    holders = [_slot(int(now), int(ends), about) for _, ends, about in slots_of(reply)]
    if not holders:
        return None
    if kind == "fairlock":
        first = holders[0]._asdict()
        del first["weight"]
        return HeldLock(name=name, kind=kind, waiters=waiters, **first)
    ends_in = (int(last) - int(now)) / 1000
    return HeldSemaphore(name, kind, used, limit, bool(is_set), ends_in, waiters, holders, tuple(within))


def slots_of(reply: Any) -> list[tuple[bytes, bytes, bytes | None]]:
    """Return entry, end and stored lease of each slot in the reply of an inspection."""
    flat = reply[6]
    return list(zip(flat[::3], flat[1::3], flat[2::3], strict=True))


def members(reply: Any) -> list[tuple[int, HeldName]]:
    """Return the names in the reply of a bucket's index, each after the ms until its lease ends."""
    now, _, flat, _ = reply
    return [(int(ends) - int(now), _member(member)) for member, ends in zip(flat[::2], flat[1::2], strict=True)]


def _member(stored: bytes) -> HeldName:
    return HeldName(stored.decode(errors="replace"))


def _lock(name: str, now: bytes, stored: bytes | None, pttl: int, waiters: int) -> HeldLock | None:
    token_and_lease = holder.parse_lock(stored)
    if token_and_lease is None:
        return None
    _, lease = token_and_lease
    ends_in, timeout = max(pttl, 0) / 1000, lease.ttl_ms / 1000
    return HeldLock(name, "lock", *_holder_fields(lease, int(now)), ends_in, timeout, lease.fence, waiters)


def _slot(now: int, ends: int, about: bytes | None) -> HeldSlot:
    lease = holder.parse_slot(about)
    return HeldSlot(*_holder_fields(lease, now), (ends - now) / 1000, lease.ttl_ms / 1000, lease.weight, lease.fence)


def _holder_fields(lease: holder.StoredLease, now: int) -> tuple[str, str, str, float]:
    held_for = max(now - lease.fence // 1000, 0) / 1000 if lease.fence else 0.0
    return lease.holder.process_text, lease.holder.location, lease.holder.doing, held_for
