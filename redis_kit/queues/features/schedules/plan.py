"""Which ticks of a schedule run now, and when the next one is due."""

from collections.abc import Iterator
from itertools import islice, takewhile
from typing import NamedTuple

from redis_kit.queues.features.schedules.definition import Definition

LATE = 60_000  # ms: a tick that is later counts as missed
FEW = 4  # ticks that are found one after the other
MOST = 4  # times as many as are wanted: no more are looked at
MINUTE = 60_000  # ms


class Plan(NamedTuple):
    """The ticks to run now, the oldest first, and how many more were missed.

    No tick up to ``last`` runs any more; ``tick`` is the next one and ``due`` when it is to run, with its jitter, both
    None if there is none. That is later than now.
    """

    run: list[int]
    missed: int
    last: int | None
    tick: int | None
    due: int | None


def plan(definition: Definition, last: int | None, now: int, *, waiting: bool = False) -> Plan:
    """Plan a schedule whose ticks up to ``last`` are over; None for a new one, which begins now. Times are in ms.

    ``waiting`` says that a tick waits for a running job: the latest one does so, and no more.
    """
    if not definition.enabled:
        return Plan([], 0, last, None, None)
    base = last if last is not None else now - (LATE if definition.at else 0)
    base = max(base, definition.start - 1)
    due, total, over = _due(definition, base, now)
    is_late = bool(due) and (waiting or now - due[0] - definition.delay(due[0]) <= LATE)
    run = due[: max(int(is_late), 0 if waiting else definition.catch_up)]
    tick = definition.after(over)
    later = None if tick is None else tick + definition.delay(tick)
    return Plan(run[::-1], total - len(run), over, tick, later)


def upcoming(definition: Definition, after: int, until: int, count: int) -> list[int]:
    """Return the next ticks between two moments, ``count`` at most, as they are due."""
    ticks = _between(definition, after, until) if definition.enabled else ()
    return [tick + definition.delay(tick) for tick in islice(ticks, count)]


def latest(definition: Definition, base: int, now: int, count: int) -> list[int]:
    """Return the last ticks after ``base`` up to ``now``, in their order, ``count`` at most.

    To walk through all would take as long as there are many, so it looks back further and further, and less far again
    if there are far too many.
    """
    now = min(now, definition.end or now)
    span = count * (definition.every or MINUTE)
    short, long = 0, 0  # times back in which there are too few, and too many
    while True:
        begin = max(base, now - span)
        ticks = list(islice(_between(definition, begin, now), MOST * count + 1))
        if len(ticks) > MOST * count:
            long = span
        elif len(ticks) >= count or begin == base:
            return ticks[-count:]
        else:
            short = span
        span = (short + long) // 2 if long else 4 * span


def _due(definition: Definition, base: int, now: int) -> tuple[list[int], int, int]:
    """Return the ticks after ``base`` that are due, the latest first, as many as may run; how many; up to when."""
    ticks = list(islice(_between(definition, base, now), FEW + 1))
    total = len(ticks)
    if total > FEW:
        ticks = latest(definition, base, now, max(FEW, definition.catch_up + 1))
        total = max(len(ticks), (ticks[-1] - base) // definition.every if definition.every else 0)
        base = ticks[0] - 1
    # In their order: a tick that is put off holds up those after it, so that none is passed over.
    due = list(takewhile(lambda each: each + definition.delay(each) <= now, ticks))
    return due[::-1], total - (len(ticks) - len(due)), due[-1] if due else base


def _between(definition: Definition, after: int, until: int) -> Iterator[int]:
    tick = definition.after(after)
    while tick is not None and tick <= until:
        yield tick
        tick = definition.after(tick)
