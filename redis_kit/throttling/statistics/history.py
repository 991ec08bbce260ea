"""Allowed and refused calls by hour, for 90 days."""

from collections.abc import Iterator
from datetime import UTC, datetime
from struct import unpack

from redis_kit.core import scripts
from redis_kit.core.flow import Flow
from redis_kit.core.values.numbers import whole_number
from redis_kit.throttling.engine.base import BaseThrottle
from redis_kit.throttling.statistics.counters import CALLS, COUNT, CYCLE, ThrottleCalls

STORED = scripts.load("redis_kit.throttling", "hours")
HOURS, HOUR_COUNT = 90 * 24, 2**40  # see hours.lua
WEEK = 7 * 24  # hours


def throttle_history(throttle: BaseThrottle, *, hours: int = WEEK) -> list[ThrottleCalls]:
    """Return the calls of a throttle in each of the last hours, the current hour last.

    ``hours`` is from 1 to 2160. One round trip, with a reply of 104 KB. Refusals that a process repeated from
    memory are counted with its next call that reaches the server. Raises RedisUnavailable and InvalidValue.
    """
    calls: list[ThrottleCalls] = throttle.carry_out(read(throttle, hours))
    return calls


async def athrottle_history(throttle: BaseThrottle, *, hours: int = WEEK) -> list[ThrottleCalls]:
    """See throttle_history()."""
    calls: list[ThrottleCalls] = await throttle.acarry_out(read(throttle, hours))
    return calls


def read(throttle: BaseThrottle, hours: int) -> Flow[list[ThrottleCalls]]:
    """Read the hours of a throttle. One round trip. Raises InvalidValue."""
    whole_number("hours", hours, (1, HOURS))
    keys = throttle.keys_of("")
    last, latest, stored = yield STORED([keys.minutes, keys.latest])
    sums = {hour: [0, 0] for hour in range(last - hours + 1, last + 1)}
    for hour, place, calls in [(latest // CALLS // 60, 0, latest % CALLS), *_stored(stored)]:
        if hour in sums:
            sums[hour][place] += calls
    return [ThrottleCalls(datetime.fromtimestamp(hour * 3600, UTC), *both) for hour, both in sums.items()]


def _stored(text: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield the hour, the place (0 allowed, 1 refused) and the calls of each minute and hour that is stored."""
    count = len(text) // 8
    for slot, number in enumerate(unpack(f">{count}q", text[: 8 * count])):
        if number:
            index, place = divmod(slot, 2)
            if index < CYCLE:
                yield (number // COUNT * CYCLE + index) // 60, place, number % COUNT
            else:
                yield number // HOUR_COUNT * HOURS + index - CYCLE, place, number % HOUR_COUNT
