"""Locks of every kind for the loops that break single calls. A lease of each shuts out all others."""

from collections.abc import Callable, Iterator
from typing import Any

from redis_kit.locks import FairLock, Lock, MultiLock, ReadWriteLock, Semaphore

Make = Callable[..., Any]


def _nested(name: str, **options: Any) -> Semaphore:
    return Semaphore(name, 1, within=Semaphore(f"{name} in all", 1, **options), **options)


def _multilock(name: str, **options: Any) -> MultiLock:
    return MultiLock(name, FairLock(f"{name} fair", **options), f"{name} too", **options)


MAKERS: dict[str, Make] = {
    "lock": Lock,
    "reentrant": lambda name, **options: Lock(name, reentrant=True, **options),
    "fairlock": FairLock,
    "write": lambda name, **options: ReadWriteLock(name, **options).write,
    "semaphore": lambda name, **options: Semaphore(name, 2, weight=2, **options),
    "fairsemaphore": lambda name, **options: Semaphore(name, 2, weight=2, fair=True, **options),
    "nested": _nested,
    "multilock": _multilock,
}
ENDLESS = 600.0  # seconds of a lease that nothing but a release ends during a round


def parts(lock: Any) -> Iterator[Any]:
    """Yield what a lock consists of."""
    for one in getattr(lock, "locks", (lock,)):
        yield from getattr(one, "levels", (one,))


def left(client: Any, lock: Any) -> list[str]:
    """Return the keys on a server that say that somebody holds a lock, or stands in its queue."""
    found = []
    for part in parts(lock):
        keys = [key for key in part.keys() if key.endswith((":holder", ":holders", ":queue"))]
        found += [key for key in keys if client.exists(key) and not _is_reserved(client, key)]
    return found


def _is_reserved(client: Any, key: str) -> bool:
    # A lock that was released is kept for a second for a waiter that was woken.
    return key.endswith(":holder") and (client.get(key) or "~").startswith("~")
