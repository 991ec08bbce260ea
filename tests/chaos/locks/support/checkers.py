"""What must never be found in a history. Each checker returns its violations in words; none is what we want.

A checker says no more than what must be wrong under any timing: a lease counts from the reply to its holder, until the
holder sent the release or stopped to count on it. An empty answer means that nothing was found, not that all is right.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TypeVar

from redis_kit.locks.leases.lease import DRIFT, MARGIN
from tests.chaos.locks.support.history import Event
from tests.chaos.locks.support.leases import Hold, holds

One = TypeVar("One", Hold, Event)
Violations = list[str]
History = Sequence[Event]
QUEUED = 300_000_000  # ns after which a waiter surely stands in the queue
AFTERMATH = 1_500_000_000  # ns after a fault in which others of its process may keep a waiter from getting there
IDLE = 1_300_000_000  # ns: a lost wake-up or a reservation for a dead waiter costs a second
WOKEN = 100_000  # µs in which all waiters that were woken at once have asked
ROUNDING = 1_500_000  # ns: the server counts in ms


def overlaps(history: History) -> Violations:
    """More holders at a time than there may be, on the clock of the processes. A writer weighs as much as the limit."""
    return _overlapping(history, lambda hold: (hold.taken, hold.end))


def overlaps_on_the_server(history: History) -> Violations:
    """The same on the server's clock, which must not have been put back."""
    return _overlapping(history, lambda hold: (hold.server_taken, hold.server_end))


def _overlapping(history: History, lasting: Callable[[Hold], tuple[int, int]]) -> Violations:
    return [text for group in _grouped(holds(history)) for text in _swept(group, lasting)]


def _swept(group: Iterable[Hold], lasting: Callable[[Hold], tuple[int, int]]) -> Violations:
    found, live = [], list[Hold]()
    spans = [(lasting(hold), hold) for hold in group]
    edges = [edge for (start, end), hold in spans if start < end for edge in ((start, 1, hold), (end, 0, hold))]
    for _, begins, hold in sorted(edges, key=lambda edge: edge[:2]):  # at the same moment one leaves first
        if not begins:
            live.remove(hold)
            continue
        live.append(hold)
        used, limit = sum(one.weight for one in live), min(one.limit for one in live)
        if used > limit:
            found.append(f"{hold.name}: {used} of {limit} in use by {', '.join(map(str, live))}")
    return found


def fences(history: History) -> Violations:
    """Leases whose fences are not in the order in which they were taken, as far as that is known for sure."""
    found = []
    for group in _grouped(holds(history)):
        found += [f"{a.name}: {b} came after {a}" for a, b in _in_order(group) if b.fence <= a.fence]
        ordered = sorted(group, key=lambda hold: hold.fence)
        found += [f"{a.name}: {a} and {b} have the same" for a, b in pairwise(ordered) if a.fence == b.fence]
    return found


def _in_order(group: Sequence[Hold]) -> Iterator[tuple[Hold, Hold]]:
    """Yield pairs of which the second was surely taken after the first."""
    following = iter(group)
    highest, coming = None, next(following, None)
    for hold in sorted(group, key=lambda hold: hold.asked):
        while coming and coming.taken < hold.asked:
            highest = max(highest or coming, coming, key=lambda one: one.fence)
            coming = next(following, None)
        if highest:
            yield highest, hold
    # A waiter asked early; but it took its lease after all leases that exclude it.
    live = [hold for hold in group if hold.taken < hold.end]
    yield from ((a, b) for a, b in pairwise(live) if a.weight + b.weight > b.limit)


def outlived(history: History) -> Violations:
    """A lease that was extended or given back although another one, which excludes it, had been taken after it."""
    found = []
    for group in _grouped(holds(history)):
        for older, newer in pairwise(sorted(group, key=lambda hold: hold.fence)):
            if older.weight + newer.weight > newer.limit and newer.taken < older.proven:
                found.append(f"{older.name}: {older} was still given back or extended when {newer} held it")
    return found


def margins(history: History) -> Violations:
    """A holder that counts on its lease for longer than the server's clock less the drift margin allows.

    Only holders that asked once count: a waiter may be granted a lease, ask again and get the full length again.
    """
    found = []
    for hold in holds(history):
        if not hold.once:
            continue
        freed = hold.server_taken * 1000 - hold.offset + hold.ttl
        late = hold.promised - (freed - hold.ttl * DRIFT - MARGIN * 1e9)
        if late > ROUNDING:
            found.append(f"{hold.name}: {hold} counts on it for {late / 1e6:.0f} ms too long")
    return found


def stale_writes(history: History) -> Violations:
    """A write that the database carried out after one with a greater fence."""
    found = []
    kept = sorted((event for event in history if event.what == "kept"), key=lambda event: event.turn)
    for group in _grouped(kept):
        for earlier, later in pairwise(group):
            if later.fence < earlier.fence:
                found.append(f"{later.name}: {later.worker} wrote with {later.fence} after {earlier.fence}")
    return found


def barging(history: History) -> Violations:
    """A fair lease that was given to a newcomer before a waiter that stood in the queue undisturbed."""
    found = []
    faults = [event for event in history if event.what == "fault"]
    for group in _grouped(hold for hold in holds(history) if hold.fair):
        group.sort(key=lambda hold: hold.asked)
        times = [hold.asked for hold in group]
        for first in group:
            later = group[bisect_right(times, first.asked + QUEUED) : bisect_right(times, first.taken)]
            for second in later:
                early = second.fence < first.fence and not _side_by_side(first, second)
                if early and not _disturbed(first, faults):
                    found.append(f"{first.name}: {second} was served before {first}")
    return found


def _side_by_side(one: Hold, other: Hold) -> bool:
    # Waiters that fit together are woken at once; the quicker process asks first.
    return one.weight + other.weight <= one.limit and abs(one.fence - other.fence) < WOKEN


def _disturbed(hold: Hold, faults: Iterable[Event]) -> bool:
    return any(fault.at < hold.taken and hold.asked < fault.until + AFTERMATH for fault in faults)


def refused_for_nothing(history: History) -> Violations:
    """An attempt that was refused in the end although nobody can have held the lock for a while."""
    found = []
    for attempts in _attempts(history):
        spans = [(_possible(attempt), attempt[0]) for attempt in attempts]
        for attempt in attempts:
            first, last = attempt[0], attempt[-1]
            since = max(first.at, last.at - IDLE)
            others = (span for span, owner in spans if owner is not first)
            if last.what == "refused" and not any(a < last.at and since < b for a, b in others):
                found.append(f"{first.name}: {first.worker} was refused though nobody held it")
    return found


def _attempts(history: History) -> list[list[list[Event]]]:
    """Return the events of each attempt, by name of the lock."""
    found: dict[str, dict[tuple[str, int], list[Event]]] = defaultdict(lambda: defaultdict(list))
    for event in history:
        if event.name and event.what not in ("kept", "fault"):
            found[event.name][event.worker, event.turn].append(event)
    return [list(group.values()) for group in found.values()]


def _possible(attempt: list[Event]) -> tuple[int, int]:
    """Return from when to when the server may have held the lock for an attempt."""
    first, last = attempt[0], attempt[-1]
    if last.what == "refused":
        return first.at, first.at
    ended = last.at if last.what in ("let_go", "lost") else last.at + last.ttl
    return first.at, ended


def _grouped(found: Iterable[One]) -> list[list[One]]:
    groups: dict[str, list[One]] = defaultdict(list)
    for one in found:
        groups[one.name].append(one)
    return list(groups.values())


ALWAYS = (overlaps, overlaps_on_the_server, fences, outlived, margins, stale_writes, barging)
