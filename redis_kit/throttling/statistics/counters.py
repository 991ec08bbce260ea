"""Calls by minute, as the scripts count them."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from redis_kit.core import connections, flow, scripts
from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow
from redis_kit.core.steps import Batch
from redis_kit.throttling.throttles.throttle import Throttle

MINUTES = scripts.load("redis_kit.throttling", "minutes")
MOST = 1440


class Minute(NamedTuple):
    """What happened in one minute of the server's clock."""

    start: datetime
    allowed: int
    refused: int


def recent(throttles: Sequence[Throttle], *, minutes: int = 30) -> dict[Throttle, list[Minute]]:
    """Return what each throttle allowed and refused in the last minutes, the current one last, by throttle.

    ``minutes`` is from 1 to 1440. One round trip for each connection that they use. Refusals from memory are counted
    with the next call of their process that reaches the server. Raises RedisUnavailable.
    """
    if not 1 <= minutes <= MOST:
        raise InvalidValue(f"minutes must be from 1 to {MOST}, not {minutes!r}.")
    found: dict[Throttle, list[Minute]] = {}
    for using in dict.fromkeys(throttle.using for throttle in throttles):
        some = [throttle for throttle in throttles if throttle.using == using]
        found |= flow.run(read(some, minutes), connections.client(using))
    return found


def read(throttles: Sequence[Throttle], minutes: int) -> Flow[dict[Throttle, list[Minute]]]:
    """Return the steps that read the minutes of throttles of one connection."""
    replies = yield Batch([MINUTES([throttle.key("minutes")], [minutes]) for throttle in throttles])
    return {throttle: _minutes(*reply) for throttle, reply in zip(throttles, replies, strict=True)}


def _minutes(last: int, *counts: int) -> list[Minute]:
    pairs = list(zip(counts[::2], counts[1::2], strict=True))
    first = last - len(pairs) + 1
    return [
        Minute(datetime.fromtimestamp((first + place) * 60, UTC), allowed, refused)
        for place, (allowed, refused) in enumerate(pairs)
    ]
