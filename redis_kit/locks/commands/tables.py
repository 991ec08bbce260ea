"""Held locks and semaphores as text for a terminal."""

from collections.abc import Iterable, Iterator, Sequence

from redis_kit.core.terminal import aligned, cut, duration
from redis_kit.core.text import clean
from redis_kit.locks.inspection import HeldLock, HeldSemaphore, HeldSlot

COLUMNS = ("NAME", "KIND", "HELD BY", "FOR", "ENDS IN", "WAITING", "FENCE")


def table(held: Iterable[HeldLock | HeldSemaphore]) -> Iterator[str]:
    """Return a line of titles and a line for each."""
    return aligned([COLUMNS, *map(_row, held)])


def about(lock: HeldLock | HeldSemaphore) -> Iterator[str]:
    """Yield all fields of a lock or semaphore."""
    yield f"{title(lock)}, {lock.kind}"
    if isinstance(lock, HeldLock):
        yield from _lease(lock)
        yield f"  waiting   {lock.waiters:,}"
        return
    yield f"  in use    {_used(lock)}"
    yield f"  waiting   {lock.waiters:,}"
    for slot in lock.holders:
        yield ""
        yield from _lease(slot)
        if slot.weight != 1:
            yield f"  weight    {slot.weight:,}"


def title(lock: HeldLock | HeldSemaphore) -> str:
    """Return its name, and those of the semaphores that it is within, the outermost first."""
    outer = lock.within if isinstance(lock, HeldSemaphore) else ()
    return clean(f"{lock.name} (within {', '.join(outer)})" if outer else lock.name)


def _row(lock: HeldLock | HeldSemaphore) -> Sequence[str]:
    by, held_for, fence = _used(lock), "", ""
    if isinstance(lock, HeldLock):
        by, held_for, fence = lock.holder, duration(lock.held_for), str(lock.fence)
    return cut(title(lock)), lock.kind, cut(clean(by)), held_for, duration(lock.ends_in), f"{lock.waiters:,}", fence


def _used(lock: HeldLock | HeldSemaphore) -> str:
    if isinstance(lock, HeldLock):
        return lock.holder
    if lock.kind == "rwlock":
        return "a writer" if lock.writing else f"{lock.used:,} readers"
    return f"{lock.used:,} of {lock.limit:,} slots"


def _lease(lease: HeldLock | HeldSlot) -> Iterator[str]:
    yield f"  held by   {clean(lease.holder)}"
    if lease.location:
        yield f"  at        {clean(lease.location)}"
    if lease.doing:
        yield f"  doing     {clean(lease.doing)}"
    yield f"  for       {duration(lease.held_for)}"
    yield f"  ends in   {duration(lease.ends_in)} of {duration(lease.timeout)}"
    yield f"  fence     {lease.fence}"
