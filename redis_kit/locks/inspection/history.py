"""The waits for locks and semaphores, and lost leases: by minute for 72 hours, and by hour for 90 days."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

from redis_kit.core import scripts
from redis_kit.core.flow import Flow
from redis_kit.core.steps import CombinedBatch
from redis_kit.core.values.numbers import whole_number
from redis_kit.locks.inspection.index import Bucket, all_buckets

GET_HISTORY = scripts.load("redis_kit.locks", "get_history")
MINUTES = (1, 72 * 60)
HOURS = (1, 90 * 24)
MOST = 2**53  # of a damaged number


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


def recent_waits(*, minutes: int = 60, using: str = "default") -> list[LockWaits]:
    """Return the waits for all locks and semaphores in each of the last minutes, the present one last.

    ``minutes`` is from 1 to 4320. Waits below 50 ms are sampled: one of 16 counts for all. One round trip; on a Cluster
    one per node. Raises InvalidValue.
    """
    waits: list[LockWaits] = Bucket("0", using=using).run_flow(read_minutes(minutes, using))
    return waits


async def arecent_waits(*, minutes: int = 60, using: str = "default") -> list[LockWaits]:
    """See recent_waits()."""
    waits: list[LockWaits] = await Bucket("0", using=using).arun_flow(read_minutes(minutes, using))
    return waits


def lock_history(*, hours: int = 168, using: str = "default") -> list[LockWaits]:
    """Return the waits for all locks and semaphores in each of the last hours, the present one last.

    ``hours`` is from 1 to 2160. Everything else is as with recent_waits().
    """
    waits: list[LockWaits] = Bucket("0", using=using).run_flow(read_hours(hours, using))
    return waits


async def alock_history(*, hours: int = 168, using: str = "default") -> list[LockWaits]:
    """See lock_history()."""
    waits: list[LockWaits] = await Bucket("0", using=using).arun_flow(read_hours(hours, using))
    return waits


def read_minutes(count: int, using: str) -> Flow[list[LockWaits]]:
    """See recent_waits()."""
    return (yield from _read("minutes", 60, whole_number("minutes", count, MINUTES), using))


def read_hours(count: int, using: str) -> Flow[list[LockWaits]]:
    """See lock_history()."""
    return (yield from _read("hours", 3600, whole_number("hours", count, HOURS), using))


def _read(part: str, seconds: int, count: int, using: str) -> Flow[list[LockWaits]]:
    steps = [GET_HISTORY([bucket.key(part)], [seconds, count]) for bucket in all_buckets(using)]
    replies = yield CombinedBatch(steps)
    sums: dict[int, list[int]] = {}
    for number, each in _numbers(replies):
        waits, waited, longest, timeouts, lost = sums.get(number, [0] * 5)
        sums[number] = [waits + each[0], waited + each[1], max(longest, each[2]), timeouts + each[3], lost + each[4]]
    last = max(reply[0] for reply in replies)
    return [_waits(number * seconds, sums.get(number, [0] * 5)) for number in range(last - count + 1, last + 1)]


def _numbers(replies: Iterable[list[Any]]) -> Iterator[tuple[int, list[int]]]:
    """Yield the five numbers of each minute or hour of each bucket, except damaged ones."""
    for reply in replies:
        for number, stored in zip(reply[1::2], reply[2::2], strict=True):
            parts = stored.split()
            if len(parts) == 5 and all(map(bytes.isdigit, parts)):
                yield number, [min(int(part[:20]), MOST) for part in parts]


def _waits(start: int, sums: list[int]) -> LockWaits:
    waits, waited, longest, timeouts, lost = sums
    return LockWaits(datetime.fromtimestamp(start, UTC), waits, waited / 1000, longest / 1000, timeouts, lost)
