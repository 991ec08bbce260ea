"""The buckets over which locks and semaphores are spread, and what is read from them, without a scan of the keys."""

from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote
from zlib import crc32

from redis_kit.core import scripts
from redis_kit.core.flow import Flow
from redis_kit.core.keys import encode
from redis_kit.core.primitive import Primitive
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.steps import Batch
from redis_kit.locks.holders import holder
from redis_kit.locks.kinds import slots
from redis_kit.locks.kinds.base import BUCKETS
from redis_kit.locks.settings import LockSettings

LIST = scripts.load("redis_kit.locks", "list_live")
CONTENDED = scripts.load("redis_kit.locks", "list_contended")
LOCK = scripts.load("redis_kit.locks", "look_at_lock")

OF_LOCK = ("holder", "waiters")
OF_SLOTS = slots.PARTS[:6]
KINDS = ("lock", "fairlock", "rwlock", "semaphore")  # all but the first are built like a semaphore


class LiveLock(NamedTuple):
    """A lock that is held. Times are in seconds: ``lasting`` is the length of its lease, ``ends_in`` what is left.

    ``kind`` is "lock" or "fairlock". The holder, where in the code it took the lock and what it does are its own words.
    """

    name: str
    kind: str
    holder: str
    location: str
    doing: str
    held_for: float
    ends_in: float
    lasting: float
    fence: int
    waiters: int


class LiveSlot(NamedTuple):
    """A lease of a semaphore. Times are in seconds."""

    holder: str
    location: str
    doing: str
    held_for: float
    ends_in: float
    lasting: float
    weight: int
    fence: int


class LiveSemaphore(NamedTuple):
    """A semaphore of which slots are in use; the last lease ends in ``ends_in`` seconds.

    ``kind`` is "semaphore" or "rwlock". ``limit_is_set`` where an operator set the limit, instead of the code.
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
    holders: list[LiveSlot]
    within: tuple[str, ...] = ()

    @property
    def writing(self) -> bool:
        """Tell whether it is a read/write lock with a writer in it."""
        return self.kind == "rwlock" and any(one.weight > 1 for one in self.holders)


class Contended(NamedTuple):
    """A lock or semaphore for which callers waited: how many did, and for how many seconds in all."""

    name: str
    kind: str
    waits: int
    waited: float
    within: tuple[str, ...] = ()


class Member(str):
    """A member of an index: kind, the names of the semaphores that it is within, and its name, as parts of a key."""

    __slots__ = ()

    @classmethod
    def of(cls, kind: str, name: str, within: Sequence[str] = ()) -> "Member":
        """Return the member of a name. Raises InvalidName."""
        return cls(":".join((kind, *map(encode, (*within, name)))))

    @property
    def kind(self) -> str:
        """Return the kind."""
        return self.partition(":")[0]

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names, the outermost first."""
        return tuple(map(unquote, self.split(":")[1:]))

    @property
    def levels(self) -> list["Member"]:
        """Return it and what it is within, the outermost first."""
        parts = self.split(":")
        return [Member(":".join(parts[:count])) for count in range(2, len(parts) + 1)]

    def bucket(self, using: str) -> "Bucket":
        """Return its bucket: that of the outermost name."""
        return Bucket(f"{crc32(self.split(':')[1].encode()) % BUCKETS:x}", using=using)


class Listed(NamedTuple):
    """A member of a bucket's index."""

    bucket: "Bucket"
    member: Member
    ends_in: float


class Bucket(Primitive):
    """One of the 16 slots."""

    component, settings = "locks", LockSettings

    def look(self, member: Member, most: int) -> ScriptCall:
        """Return the step that reads all about one member."""
        if member.kind == "lock":
            return LOCK([self.key(f"{member}:{part}") for part in OF_LOCK])
        return slots.LOOK([self.key(f"{member}:{part}") for part in OF_SLOTS], [most])


def buckets(using: str) -> list[Bucket]:
    """Return all buckets."""
    return [Bucket(f"{number:x}", using=using) for number in range(BUCKETS)]


def listed(limit: int, using: str) -> Flow[tuple[list[Listed], int]]:
    """Return what is held, first what ends first, and how much in all."""
    every = buckets(using)
    replies = yield Batch([LIST([bucket.key("live")], [limit]) for bucket in every])
    found = [one for bucket, reply in zip(every, replies, strict=True) for one in members(bucket, reply)]
    return sorted(found, key=lambda one: one.ends_in)[:limit], sum(held for _, held, _ in replies)


def contended(limit: int, using: str) -> Flow[list[Contended]]:
    """Return what was waited for longest."""
    replies = yield Batch([CONTENDED([one.key("waited"), one.key("waits")], [limit]) for one in buckets(using)])
    found = []
    for reply in replies:
        for member, waited, waits in zip(reply[::3], reply[1::3], reply[2::3], strict=True):
            kind, (*within, name) = _member(member).kind, _member(member).names
            found.append(Contended(name, kind, int(float(waits)), float(waited) / 1000, tuple(within)))
    return sorted(found, key=lambda one: (-one.waited, one.name))[:limit]


def seen(member: Member, reply: Any) -> LiveLock | LiveSemaphore | None:
    """Return what a look at a member saw; None where it is free by now."""
    kind, (*within, name) = member.kind, member.names
    if kind == "lock":
        return _lock(name, *reply)
    now, used, limit, is_set, waiters, last, _ = reply
    held = [_slot(int(now), int(ends), about) for _, ends, about in slots_of(reply)]
    if not held:
        return None
    if kind == "fairlock":
        first = held[0]._asdict()
        del first["weight"]
        return LiveLock(name=name, kind=kind, waiters=waiters, **first)
    ends_in = (int(last) - int(now)) / 1000
    return LiveSemaphore(name, kind, used, limit, bool(is_set), ends_in, waiters, held, tuple(within))


def slots_of(reply: Any) -> list[tuple[bytes, bytes, bytes | None]]:
    """Return token, end and what is stored about it for each slot that a look saw."""
    flat = reply[6]
    return list(zip(flat[::3], flat[1::3], flat[2::3], strict=True))


def members(bucket: Bucket, reply: Any) -> list[Listed]:
    """Return what the index of a bucket listed."""
    now, _, flat = reply
    pairs = zip(flat[::2], flat[1::2], strict=True)
    return [Listed(bucket, _member(member), (int(ends) - int(now)) / 1000) for member, ends in pairs]


def _member(stored: bytes) -> Member:
    return Member(stored.decode(errors="replace"))


def _lock(name: str, now: bytes, stored: bytes | None, left: int, waiters: int) -> LiveLock | None:
    found = holder.of_lock(stored)
    if found is None:
        return None
    _, held = found
    return LiveLock(name, "lock", *_common(held, int(now)), max(left, 0) / 1000, held.ttl / 1000, held.fence, waiters)


def _slot(now: int, ends: int, about: bytes | None) -> LiveSlot:
    held = holder.of_slot(about)
    return LiveSlot(*_common(held, now), (ends - now) / 1000, held.ttl / 1000, held.weight, held.fence)


def _common(held: holder.Holding, now: int) -> tuple[str, str, str, float]:
    by = held.holder
    return by.place, by.location, by.doing, max(now - held.since, 0) / 1000 if held.since else 0.0
