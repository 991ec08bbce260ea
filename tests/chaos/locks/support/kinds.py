"""What is competed for: each kind makes a lock for one section, and says how much of it that section uses."""

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from redis_kit import locks
from redis_kit.locks.kinds.fair_lock import FairLock
from redis_kit.locks.kinds.read_write_lock import ReadWriteLock

ALL = 1000  # what a writer uses of a lock for readers and writers


class Wanted(NamedTuple):
    """A lock that is to be taken, and what a checker has to know of it."""

    lock: Any
    weight: int = 1
    limit: int = 1
    fair: bool = False


def lock(name: str, chance: Random, **options: Any) -> Wanted:
    """One holder."""
    return Wanted(locks.Lock(name, **options))


def semaphore(name: str, chance: Random, *, weight: int = 1, **options: Any) -> Wanted:
    """Two slots."""
    return Wanted(locks.Semaphore(name, 2, weight=weight, **options), weight=weight, limit=2)


def weighted(name: str, chance: Random, *, weight: int = 0, **options: Any) -> Wanted:
    """Five slots, of which each holder uses one, two or three."""
    weight = weight or chance.randint(1, 3)
    return Wanted(locks.Semaphore(name, 5, weight=weight, **options), weight=weight, limit=5)


def fairsemaphore(name: str, chance: Random, *, weight: int = 1, **options: Any) -> Wanted:
    """Two slots, in the order in which they were asked for."""
    return Wanted(locks.Semaphore(name, 2, fair=True, weight=weight, **options), weight=weight, limit=2, fair=True)


def fairlock(name: str, chance: Random, **options: Any) -> Wanted:
    """One holder, in the order in which they asked."""
    return Wanted(FairLock(name, **options), fair=True)


def rwlock(name: str, chance: Random, *, write: bool | None = None, **options: Any) -> Wanted:
    """Many readers, or a writer that uses as much as there is."""
    write = chance.random() < 0.3 if write is None else write
    found = ReadWriteLock(name, **options)
    return Wanted(found.write if write else found.read, weight=ALL if write else 1, limit=ALL, fair=True)


KINDS: dict[str, Callable[..., Wanted]] = {
    "lock": lock,
    "fairlock": fairlock,
    "rwlock": rwlock,
    "semaphore": semaphore,
    "weighted": weighted,
    "fairsemaphore": fairsemaphore,
}
SLOTS = ("semaphore", "weighted", "fairsemaphore")
# The options with which one holder leaves room for no other.
WHOLE: dict[str, dict[str, Any]] = {
    "lock": {},
    "fairlock": {},
    "rwlock": {"write": True},
    "semaphore": {"weight": 2},
    "weighted": {"weight": 5},
    "fairsemaphore": {"weight": 2},
}


def make_lock(name: str, chance: Random, **options: Any) -> Wanted:
    """Make the lock of a name, which begins with its kind: ``semaphore:1``."""
    return KINDS[name.partition(":")[0]](name, chance, **options)


def names(kind: str, count: int) -> list[str]:
    """Return so many names of one kind."""
    return [f"{kind}:{number}" for number in range(count)]
