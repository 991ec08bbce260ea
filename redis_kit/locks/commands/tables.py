"""What is held, as text for a terminal."""

from collections.abc import Iterable, Iterator, Sequence

from redis_kit.locks.live import LiveLock, LiveSemaphore, LiveSlot

WIDEST = 60  # characters of a column
COLUMNS = ("NAME", "KIND", "HELD BY", "FOR", "ENDS IN", "WAITING", "FENCE")


def table(held: Iterable[LiveLock | LiveSemaphore]) -> Iterator[str]:
    """Yield a line for each, below a line of titles."""
    rows = [COLUMNS, *map(_row, held)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def about(one: LiveLock | LiveSemaphore) -> Iterator[str]:
    """Yield all that is known of one."""
    yield f"{title(one)}, {one.kind}"
    if isinstance(one, LiveLock):
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


def title(one: LiveLock | LiveSemaphore) -> str:
    """Return its name, and those of the semaphores that it is within, the outermost first."""
    outer = one.within if isinstance(one, LiveSemaphore) else ()
    return clean(f"{one.name} (within {', '.join(outer)})" if outer else one.name)


def clean(text: str) -> str:
    """Return text as it may be shown: it may come from anybody, and terminals obey some characters."""
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def duration(seconds: float) -> str:
    """Return seconds in words: ``41.2 s``, ``3 min 20 s``, ``5 h 12 min``."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60:,} h {minutes % 60} min"


def _row(one: LiveLock | LiveSemaphore) -> Sequence[str]:
    by, held_for, fence = _used(one), "", ""
    if isinstance(one, LiveLock):
        by, held_for, fence = one.holder, duration(one.held_for), str(one.fence)
    return _cut(title(one)), one.kind, _cut(clean(by)), held_for, duration(one.ends_in), f"{one.waiters:,}", fence


def _cut(text: str) -> str:
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 1]}…"


def _used(one: LiveLock | LiveSemaphore) -> str:
    if isinstance(one, LiveLock):
        return one.holder
    if one.kind == "rwlock":
        return "a writer" if one.writing else f"{one.used:,} readers"
    return f"{one.used:,} of {one.limit:,} slots"


def _lease(one: LiveLock | LiveSlot) -> Iterator[str]:
    yield f"  held by   {clean(one.holder)}"
    if one.location:
        yield f"  at        {clean(one.location)}"
    if one.doing:
        yield f"  doing     {clean(one.doing)}"
    yield f"  for       {duration(one.held_for)}"
    yield f"  ends in   {duration(one.ends_in)} of {duration(one.lasting)}"
    yield f"  fence     {one.fence}"
