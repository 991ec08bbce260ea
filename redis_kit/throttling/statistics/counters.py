"""Allowed and refused calls by minute."""

from collections.abc import Sequence
from datetime import UTC, datetime
from struct import unpack
from typing import NamedTuple

from redis_kit.core import connections, flow, scripts
from redis_kit.core.flow import Flow
from redis_kit.core.steps import Batch
from redis_kit.core.values.numbers import whole_number
from redis_kit.throttling.engine.base import AnyThrottle

MINUTES = scripts.load("redis_kit.throttling", "minutes")
DAY = 1440  # minutes
CYCLE, COUNT, CALLS = 4320, 2**32, 2**26  # see minutes.lua; CYCLE is the most that can be read
SIZE = 16  # bytes of a minute


class ThrottleCalls(NamedTuple):
    """The calls of a minute or an hour, which begins at ``start`` by the server's clock."""

    start: datetime
    allowed: int
    refused: int


def recent(throttles: Sequence[AnyThrottle], *, minutes: int = 30) -> dict[AnyThrottle, list[ThrottleCalls]]:
    """Return the calls of each throttle in the last minutes, the current minute last.

    ``minutes`` is from 1 to 4320. One round trip for each connection. Refusals that a process repeated from memory are
    counted with its next call that reaches the server. Raises RedisUnavailable and InvalidValue.
    """
    by_throttle: dict[AnyThrottle, list[ThrottleCalls]] = {}
    for using, of_connection in by_connection(throttles).items():
        by_throttle |= flow.run(read(of_connection, minutes), connections.client(using))
    return by_throttle


async def arecent(throttles: Sequence[AnyThrottle], *, minutes: int = 30) -> dict[AnyThrottle, list[ThrottleCalls]]:
    """See recent()."""
    by_throttle: dict[AnyThrottle, list[ThrottleCalls]] = {}
    for using, of_connection in by_connection(throttles).items():
        by_throttle |= await flow.arun(read(of_connection, minutes), connections.aclient(using))
    return by_throttle


def read(throttles: Sequence[AnyThrottle], minutes: int) -> Flow[dict[AnyThrottle, list[ThrottleCalls]]]:
    """Read the minutes of throttles of one connection. One round trip. Raises InvalidValue."""
    whole_number("minutes", minutes, (1, CYCLE))
    keys = [throttle.keys_of("") for throttle in throttles]
    replies = yield Batch([MINUTES([own.minutes, own.latest], [minutes]) for own in keys])
    return {throttle: decoded(minutes, *reply) for throttle, reply in zip(throttles, replies, strict=True)}


def decoded(wanted: int, last: int, latest: int, stored: bytes) -> list[ThrottleCalls]:
    """Return the calls of the last minutes, given a reply of minutes.lua."""
    numbers = iter(unpack(f">{2 * wanted}q", stored.ljust(SIZE * wanted, b"\0")))
    minutes = range(last - wanted + 1, last + 1)
    return [
        ThrottleCalls(
            datetime.fromtimestamp(minute * 60, UTC),
            _count(allowed, minute) + (latest % CALLS if latest // CALLS == minute else 0),
            _count(refused, minute),
        )
        for minute, allowed, refused in zip(minutes, numbers, numbers, strict=True)
    ]


def by_connection(throttles: Sequence[AnyThrottle]) -> dict[str, list[AnyThrottle]]:
    """Return the throttles of each connection."""
    grouped: dict[str, list[AnyThrottle]] = {}
    for throttle in throttles:
        grouped.setdefault(throttle.using, []).append(throttle)
    return grouped


def _count(number: int, minute: int) -> int:
    return number % COUNT if number // COUNT == minute // CYCLE else 0
