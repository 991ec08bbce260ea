"""The waits for locks and semaphores, and lost leases: by minute for 72 hours, and by hour for 90 days."""

from collections.abc import Sequence
from datetime import UTC, datetime
from struct import Struct
from typing import NamedTuple

from redis_kit.core import scripts
from redis_kit.core.flow import Flow, operation, twin
from redis_kit.core.steps import Batch
from redis_kit.core.values.numbers import whole_number
from redis_kit.locks.inspection.index import all_buckets, over

GET_HISTORY = scripts.load("redis_kit.locks", "get_history")
ENTRY = Struct(">6I")  # a minute or an hour since 1970, waits, ms in all, ms at most, timeouts, lost leases
MINUTES, HOURS = 72 * 60, 90 * 24  # that are stored
NOTHING = (0, 0, 0, 0, 0)


class LockWaits(NamedTuple):
    """The waits of a minute, or of an hour, and the lost leases. ``start`` is its beginning by the server's clock.

    - ``waits``: waits that ended; ``timeouts``: those that ended without a lease.
    - ``waited`` and ``longest``: the seconds of these waits, in all and at most.
    - ``lost``: leases that had ended before their holders released or extended them.
    """

    start: datetime
    waits: int
    waited: float
    longest: float
    timeouts: int
    lost: int


@operation(over=over)
def recent_waits(*, minutes: int = 60, using: str = "default") -> Flow[list[LockWaits]]:
    """Return the waits for all locks and semaphores in each of the last minutes, the present one last.

    ``minutes`` is from 1 to 4320. Waits below 50 ms are sampled: one of 16 counts for all. One round trip; on a Cluster
    one per node. Raises InvalidValue.
    """
    return read_waits(minutes, using)


@operation(over=over)
def lock_history(*, hours: int = 168, using: str = "default") -> Flow[list[LockWaits]]:
    """Return the waits for all locks and semaphores in each of the last hours, the present one last.

    ``hours`` is from 1 to 2160. Everything else is as with recent_waits().
    """
    return read_waits(hours, using, by_hour=True)


arecent_waits = twin(recent_waits)
alock_history = twin(lock_history)


def read_waits(count: int, using: str, *, by_hour: bool = False) -> Flow[list[LockWaits]]:
    """Read the waits in each of the last minutes, or hours. See recent_waits() and lock_history()."""
    part, seconds, stored = ("hours", 3600, HOURS) if by_hour else ("minutes", 60, MINUTES)
    whole_number(part, count, (1, stored))
    steps = [GET_HISTORY([bucket.key(part)], [stored, seconds, count]) for bucket in all_buckets(using)]
    replies = yield Batch(steps)
    last = max(now for now, _ in replies)
    by_number: dict[int, list[Sequence[int]]] = {number: [NOTHING] for number in range(last - count + 1, last + 1)}
    for _, text in replies:
        for number, *numbers in ENTRY.iter_unpack(text[: len(text) // ENTRY.size * ENTRY.size]):
            if number in by_number:
                by_number[number].append(numbers)
    return [_joined(number * seconds, entries) for number, entries in by_number.items()]


def _joined(start: int, entries: Sequence[Sequence[int]]) -> LockWaits:
    waits, waited, longest, timeouts, lost = zip(*entries, strict=True)
    when = datetime.fromtimestamp(start, UTC)
    return LockWaits(when, sum(waits), sum(waited) / 1000, max(longest) / 1000, sum(timeouts), sum(lost))
