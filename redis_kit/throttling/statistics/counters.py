"""Allowed and refused calls: by minute for 72 hours, and by hour for 90 days."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from struct import Struct
from typing import NamedTuple

from redis_kit.core import scripts
from redis_kit.core.flow import Flow, twin
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.steps import Batch
from redis_kit.core.values.numbers import whole_number
from redis_kit.throttling.engine.base import AnyThrottle, Asked, BaseThrottle, asking, checked_throttle, read_together

MINUTES = scripts.load("redis_kit.throttling", "minutes")
DAY = 1440  # minutes
MOST = 4320  # minutes that can be read
CALLS = 2**26  # see minutes.lua
NUMBER, SLOT = Struct("<I"), Struct("<BII")  # of a block


class ThrottleCalls(NamedTuple):
    """The calls of a minute or an hour, which begins at ``start`` by the server's clock."""

    start: datetime
    allowed: int
    refused: int


@asking
def recent(throttles: Sequence[AnyThrottle], *, minutes: int = 30) -> Flow[dict[AnyThrottle, list[ThrottleCalls]]]:
    """Return the calls of each throttle in the last minutes, the current minute last.

    ``minutes`` is from 1 to 4320. One round trip for each connection. Refusals that a process repeated from memory are
    counted with its next call that reaches the server. Raises RedisUnavailable and InvalidValue.
    """
    return read_together(throttles, lambda of_connection: read(of_connection, minutes))


arecent = twin(recent)


def read(throttles: Sequence[AnyThrottle], minutes: int) -> Flow[dict[AnyThrottle, list[ThrottleCalls]]]:
    """Read the minutes of throttles of one connection. One round trip. Raises InvalidValue."""
    whole_number("minutes", minutes, (1, MOST))
    replies = yield Batch([stored(throttle, minutes) for throttle in throttles])
    return {throttle: decoded(minutes, *reply) for throttle, reply in zip(throttles, replies, strict=True)}


def stored(throttle: BaseThrottle, minutes: int) -> ScriptCall:
    """Return the step that reads the last minutes of a throttle."""
    keys = throttle.keys_of("")
    return MINUTES([keys.counts, keys.latest], [minutes])


def decoded(wanted: int, last: int, latest: int, refused: int, blocks: Sequence[bytes | None]) -> list[ThrottleCalls]:
    """Return the calls of the last minutes, given a reply of minutes.lua."""
    sums = {minute: [0, 0] for minute in range(last - wanted + 1, last + 1)}
    for block in blocks:
        add(sums, calls_of(block or b"", 60))
    add(sums, latest_calls(latest, refused))
    return [ThrottleCalls(datetime.fromtimestamp(minute * 60, UTC), *both) for minute, both in sums.items()]


def calls_of(block: bytes, slots: int) -> Iterator[tuple[int, int, int]]:
    """Yield minute, allowed and refused for each minute of a block of an hour; for that of a day, hours."""
    size = (len(block) - NUMBER.size) // SLOT.size * SLOT.size
    if size > 0:
        (number,) = NUMBER.unpack_from(block)
        for slot, allowed, refused in SLOT.iter_unpack(block[NUMBER.size : NUMBER.size + size]):
            yield number * slots + slot, allowed, refused


def latest_calls(latest: int, refused: int) -> Iterator[tuple[int, int, int]]:
    """Yield minute, allowed and refused of the last minute with allowed and with refused calls, given the counters."""
    yield latest // CALLS, latest % CALLS, 0
    yield refused // CALLS, 0, refused % CALLS


def add(sums: Mapping[int, list[int]], calls: Iterable[tuple[int, int, int]]) -> None:
    """Add calls to the sums of allowed and refused calls by time, as far as they are wanted."""
    for time, allowed, refused in calls:
        if time in sums:
            sums[time][0] += allowed
            sums[time][1] += refused


BY_HOUR = scripts.load("redis_kit.throttling", "hours")
HOURS = 90 * 24  # that can be read
WEEK = 7 * 24  # hours


@asking
def throttle_history(throttle: BaseThrottle, *, hours: int = WEEK) -> Flow[list[ThrottleCalls]]:
    """Return the calls of a throttle in each of the last hours, the current hour last.

    ``hours`` is from 1 to 2160. One round trip, with a reply of up to 75 KB. Refusals that a process repeated from
    memory are counted with its next call that reaches the server. Raises RedisUnavailable and InvalidValue.
    """
    calls: list[ThrottleCalls] = yield Asked(checked_throttle(throttle), read_hours(throttle, hours))
    return calls


athrottle_history = twin(throttle_history)


def read_hours(throttle: BaseThrottle, hours: int) -> Flow[list[ThrottleCalls]]:
    """Read the hours of a throttle. One round trip. Raises InvalidValue."""
    whole_number("hours", hours, (1, HOURS))
    keys = throttle.keys_of("")
    last, latest, flat = yield BY_HOUR([keys.counts, keys.latest])
    blocks = dict(zip(flat[::2], flat[1::2], strict=True))
    sums = {hour: [0, 0] for hour in range(last - hours + 1, last + 1)}
    refused = blocks.pop(b"refused", b"0")
    add(sums, _by_hour(latest_calls(latest, int(refused) if refused.isdigit() else 0)))
    for field, block in blocks.items():
        add(sums, calls_of(block, 24) if field.startswith(b"d") else _by_hour(calls_of(block, 60)))
    return [ThrottleCalls(datetime.fromtimestamp(hour * 3600, UTC), *both) for hour, both in sums.items()]


def _by_hour(calls: Iterable[tuple[int, int, int]]) -> Iterator[tuple[int, int, int]]:
    return ((minute // 60, allowed, refused) for minute, allowed, refused in calls)
