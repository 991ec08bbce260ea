"""Held locks and semaphores as text for a terminal."""

from collections.abc import Iterable, Iterator, Sequence

from redis_kit.core.terminal import aligned, cut, duration
from redis_kit.core.text import clean
from redis_kit.locks.inspection import HeldLock, HeldSemaphore, HeldSlot

COLUMNS = ("NAME", "KIND", "HELD BY", "FOR", "ENDS IN", "WAITING", "FENCE")


def table(held: Iterable[HeldLock | HeldSemaphore]) -> Iterator[str]:
    """Return a line of titles and a line for each."""
    return aligned([COLUMNS, *map(_row, held)])


def about(one: HeldLock | HeldSemaphore) -> Iterator[str]:
    """Yield all fields of one."""
    yield f"{title(one)}, {one.kind}"
    if isinstance(one, HeldLock):
        yield from _lease(one)
        yield f"  waiting   {one.waiters:,}"
        return
    yield f"  in use    {_used(one)}"
    yield f"  waiting   {one.waiters:,}"
    for slot in one.holders:
        yield ""
        yield from _lease(slot)
        if slot.weight != 1:
            yield f"  weight    {slot.weight:,}"


def title(one: HeldLock | HeldSemaphore) -> str:
    """Return its name, and those of the semaphores that it is within, the outermost first."""
    outer = one.within if isinstance(one, HeldSemaphore) else ()
    return clean(f"{one.name} (within {', '.join(outer)})" if outer else one.name)


def _row(one: HeldLock | HeldSemaphore) -> Sequence[str]:
    by, held_for, fence = _used(one), "", ""
    if isinstance(one, HeldLock):
        by, held_for, fence = one.holder, duration(one.held_for), str(one.fence)
    return cut(title(one)), one.kind, cut(clean(by)), held_for, duration(one.ends_in), f"{one.waiters:,}", fence


def _used(one: HeldLock | HeldSemaphore) -> str:
    if isinstance(one, HeldLock):
        return one.holder
    if one.kind == "rwlock":
        return "a writer" if one.writing else f"{one.used:,} readers"
    return f"{one.used:,} of {one.limit:,} slots"


def _lease(one: HeldLock | HeldSlot) -> Iterator[str]:
    yield f"  held by   {clean(one.holder)}"
    if one.location:
        yield f"  at        {clean(one.location)}"
    if one.doing:
        yield f"  doing     {clean(one.doing)}"
    yield f"  for       {duration(one.held_for)}"
    yield f"  ends in   {duration(one.ends_in)} of {duration(one.timeout)}"
    yield f"  fence     {one.fence}"
