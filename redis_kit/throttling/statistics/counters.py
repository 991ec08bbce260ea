"""Allowed and refused calls by minute."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from redis_kit.core import connections, flow, scripts
from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow
from redis_kit.core.steps import Batch
from redis_kit.throttling.engine.base import AnyThrottle

MINUTES = scripts.load("redis_kit.throttling", "minutes")
DAY = 1440  # minutes, the most that can be read


class Minute(NamedTuple):
    """The calls of one minute of the server's clock."""

    start: datetime
    allowed: int
    refused: int


def recent(throttles: Sequence[AnyThrottle], *, minutes: int = 30) -> dict[AnyThrottle, list[Minute]]:
    """Return the calls of each throttle in the last minutes, the current minute last.

    ``minutes`` is from 1 to 1440. One round trip for each connection. Refusals that a process repeated from memory are
    counted with its next call that reaches the server. Raises RedisUnavailable.
    """
    if not 1 <= minutes <= DAY:
        raise InvalidValue(f"minutes must be from 1 to {DAY}, not {minutes!r}.")
    by_throttle: dict[AnyThrottle, list[Minute]] = {}
    for using in dict.fromkeys(throttle.using for throttle in throttles):
        of_connection = [throttle for throttle in throttles if throttle.using == using]
        by_throttle |= flow.run(read(of_connection, minutes), connections.client(using))
    return by_throttle


def read(throttles: Sequence[AnyThrottle], minutes: int) -> Flow[dict[AnyThrottle, list[Minute]]]:
    """Read the minutes of throttles of one connection. One round trip."""
    keys = [throttle.keys_of("") for throttle in throttles]
    replies = yield Batch([MINUTES([own.minutes, own.latest], [minutes]) for own in keys])
    return {throttle: _minutes(*reply) for throttle, reply in zip(throttles, replies, strict=True)}


def _minutes(last: int, *counts: int) -> list[Minute]:
    pairs = list(zip(counts[::2], counts[1::2], strict=True))
    first = last - len(pairs) + 1
    return [
        Minute(datetime.fromtimestamp((first + index) * 60, UTC), allowed, refused)
        for index, (allowed, refused) in enumerate(pairs)
    ]
