"""What is held now and what is waited for, and how to end what somebody else holds."""

from collections.abc import Sequence
from typing import NamedTuple

from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow
from redis_kit.core.steps import Batch
from redis_kit.core.text import did_you_mean, shortened
from redis_kit.locks.arguments import whole
from redis_kit.locks.holders.holder import Holder
from redis_kit.locks.inspection import force_release as forcing
from redis_kit.locks.inspection import index
from redis_kit.locks.inspection.index import KINDS, Contended, LiveLock, LiveSemaphore, LiveSlot, Member

__all__ = [
    "KINDS",
    "Contended",
    "Live",
    "LiveLock",
    "LiveSemaphore",
    "LiveSlot",
    "acontended",
    "afind",
    "aforce_release",
    "alive_locks",
    "contended",
    "find",
    "force_release",
    "live_locks",
]

MOST = (1, 10_000)
SHOWN = 20  # holders of each semaphore in a list


class Live(NamedTuple):
    """What is held, and how many more locks and semaphores are that were not asked for."""

    locks: list[LiveLock]
    semaphores: list[LiveSemaphore]
    more: int


def live_locks(*, limit: int = 100, using: str = "default") -> Live:
    """Return the locks and semaphores that are held now, those that end first before the others.

    At most ``limit`` (1 to 10,000), and at most 20 holders of each semaphore. Two round trips; on a Cluster two per
    node.
    """
    return index.Bucket("0", using=using)._run(_live(whole("limit", limit, MOST), using))


async def alive_locks(*, limit: int = 100, using: str = "default") -> Live:
    """See live_locks()."""
    return await index.Bucket("0", using=using)._arun(_live(whole("limit", limit, MOST), using))


def find(name: str, *, limit: int = 100, using: str = "default") -> list[LiveLock | LiveSemaphore]:
    """Return what is held under a name, of each kind; an empty list where that is nothing.

    At most ``limit`` (1 to 10,000) holders of each. Semaphores within others are not looked for. One round trip.
    """
    return index.Bucket("0", using=using)._run(_find(name, whole("limit", limit, MOST), using))


async def afind(name: str, *, limit: int = 100, using: str = "default") -> list[LiveLock | LiveSemaphore]:
    """See find()."""
    return await index.Bucket("0", using=using)._arun(_find(name, whole("limit", limit, MOST), using))


def contended(*, limit: int = 20, using: str = "default") -> list[Contended]:
    """Return the locks and semaphores that callers waited for longest in all, in the last 24 hours at most.

    At most ``limit`` (1 to 200). One round trip; on a Cluster one per node.
    """
    return index.Bucket("0", using=using)._run(index.contended(whole("limit", limit, (1, 200)), using))


async def acontended(*, limit: int = 20, using: str = "default") -> list[Contended]:
    """See contended()."""
    return await index.Bucket("0", using=using)._arun(index.contended(whole("limit", limit, (1, 200)), using))


def force_release(
    name: str,
    *,
    kind: str = "lock",
    fence: int | None = None,
    within: Sequence[str] = (),
    using: str = "default",
) -> list[Holder]:
    """End the lease of whoever holds a name, wake a waiter as its release would, and return whom it was taken from.

    ``kind`` is "lock", "fairlock", "rwlock" or "semaphore"; of the last two all leases end, at most 10,000 at once, or
    the one with the ``fence``. With a fence nobody is hit who took it in the meantime. ``within`` names the semaphores
    that this one is within, the outermost first. The holder is not stopped: it learns by its next renewal, extension or
    release, which raise LockLost; until then only a database that checks fences keeps it from doing harm. An empty list
    where nobody held it. Two round trips, one more for nested semaphores and for each 500 leases; logged as warnings.
    """
    steps = forcing.force(_member(kind, name, within), _fence(fence), using)
    return index.Bucket("0", using=using)._run(steps)


async def aforce_release(
    name: str,
    *,
    kind: str = "lock",
    fence: int | None = None,
    within: Sequence[str] = (),
    using: str = "default",
) -> list[Holder]:
    """See force_release()."""
    steps = forcing.force(_member(kind, name, within), _fence(fence), using)
    return await index.Bucket("0", using=using)._arun(steps)


def _live(limit: int, using: str) -> Flow[Live]:
    found, held = yield from index.listed(limit, using)
    replies = (yield Batch([one.bucket.look(one.member, SHOWN) for one in found])) if found else ()
    seen = [index.seen(one.member, reply) for one, reply in zip(found, replies, strict=True)]
    locks = [one for one in seen if isinstance(one, LiveLock)]
    return Live(locks, [one for one in seen if isinstance(one, LiveSemaphore)], more=held - len(found))


def _find(name: str, limit: int, using: str) -> Flow[list[LiveLock | LiveSemaphore]]:
    members = [Member.of(kind, name) for kind in KINDS]
    bucket = members[0].bucket(using)
    replies = yield Batch([bucket.look(member, limit) for member in members])
    seen = [index.seen(member, reply) for member, reply in zip(members, replies, strict=True)]
    return [one for one in seen if one is not None]


def _member(kind: str, name: str, within: Sequence[str]) -> Member:
    if kind not in KINDS:
        hint = did_you_mean(kind, KINDS)
        raise InvalidValue(f"kind must be one of {', '.join(map(repr, KINDS))}, not {shortened(kind)}. {hint}".rstrip())
    if isinstance(within, str) or (within and kind != "semaphore"):
        raise InvalidValue(f"within must be a list of names, and only a semaphore has one, not {shortened(within)}.")
    return Member.of(kind, name, within)


def _fence(number: int | None) -> int | None:
    return None if number is None else whole("fence", number, (0, 2**63 - 1))
