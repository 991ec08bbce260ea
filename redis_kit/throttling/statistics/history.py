"""Allowed and refused calls by hour, for 90 days."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from redis_kit.core import scripts
from redis_kit.core.flow import Flow
from redis_kit.core.values.numbers import whole_number
from redis_kit.throttling.engine.base import BaseThrottle
from redis_kit.throttling.statistics.counters import ThrottleCalls, add, calls_of, latest_calls

STORED = scripts.load("redis_kit.throttling", "hours")
HOURS = 90 * 24  # that can be read
WEEK = 7 * 24  # hours


def throttle_history(throttle: BaseThrottle, *, hours: int = WEEK) -> list[ThrottleCalls]:
    """Return the calls of a throttle in each of the last hours, the current hour last.

    ``hours`` is from 1 to 2160. One round trip, with a reply of up to 75 KB. Refusals that a process repeated from
    memory are counted with its next call that reaches the server. Raises RedisUnavailable and InvalidValue.
    """
    return throttle.run_flow(read(throttle, hours))


async def athrottle_history(throttle: BaseThrottle, *, hours: int = WEEK) -> list[ThrottleCalls]:
    """See throttle_history()."""
    return await throttle.arun_flow(read(throttle, hours))


def read(throttle: BaseThrottle, hours: int) -> Flow[list[ThrottleCalls]]:
    """Read the hours of a throttle. One round trip. Raises InvalidValue."""
    whole_number("hours", hours, (1, HOURS))
    keys = throttle.keys_of("")
    last, latest, flat = yield STORED([keys.counts, keys.latest])
    blocks = dict(zip(flat[::2], flat[1::2], strict=True))
    sums = {hour: [0, 0] for hour in range(last - hours + 1, last + 1)}
    refused = blocks.pop(b"refused", b"0")
    add(sums, _by_hour(latest_calls(latest, int(refused) if refused.isdigit() else 0)))
    for field, block in blocks.items():
        add(sums, calls_of(block, 24) if field.startswith(b"d") else _by_hour(calls_of(block, 60)))
    return [ThrottleCalls(datetime.fromtimestamp(hour * 3600, UTC), *both) for hour, both in sums.items()]


def _by_hour(calls: Iterable[tuple[int, int, int]]) -> Iterator[tuple[int, int, int]]:
    return ((minute // 60, allowed, refused) for minute, allowed, refused in calls)
