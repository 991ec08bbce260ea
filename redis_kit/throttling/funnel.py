"""The funnel of the book "Redis Deep Adventure", with the reply of CL.THROTTLE."""

import math
from functools import lru_cache
from typing import NamedTuple

from redis_kit.core.errors import InvalidRate, InvalidValue
from redis_kit.core.text import shortened
from redis_kit.core.values.rates import Rate
from redis_kit.throttling.throttles import Throttle
from redis_kit.throttling.values import Decision


class Funnel(NamedTuple):
    """The five integers of redis-cell's CL.THROTTLE, in its order. Times are whole seconds, rounded up."""

    limited: int
    limit: int
    remaining: int
    retry_after: int
    reset_after: int


def funnel(key: str, capacity: int, count: int, period: float, quantity: int = 1) -> Funnel:
    """Pour ``quantity`` into a funnel that holds ``capacity`` and drains ``count`` in ``period`` seconds.

    Returns, in this order:

    - 1 if it was refused, else 0,
    - the capacity,
    - the room that remains,
    - the seconds until as much has room, or -1 if it was accepted,
    - the seconds until the funnel is empty.

    ``capacity`` is CL.THROTTLE's max_burst plus 1, at least 1. A ``quantity`` of 0 only looks; more than ``capacity``
    raises InvalidValue. One round trip. The failure policy of throttles applies. Source: "Redis Deep Adventure" (Qian
    Wenpin), funnel throttling; GCRA.
    """
    throttle = _throttle(capacity, count, period)
    _check_quantity(quantity, capacity)
    return _integers(throttle.hit(key, cost=quantity) if quantity else throttle.peek(key))


async def afunnel(key: str, capacity: int, count: int, period: float, quantity: int = 1) -> Funnel:
    """See funnel()."""
    throttle = _throttle(capacity, count, period)
    _check_quantity(quantity, capacity)
    return _integers(await throttle.ahit(key, cost=quantity) if quantity else await throttle.apeek(key))


@lru_cache(maxsize=256)
def _throttle(capacity: int, count: int, period: float) -> Throttle:
    if type(capacity) is not int or capacity < 1:
        raise InvalidRate(f"capacity must be a whole number of 1 or more, not {capacity!r}.")
    if count == 0:
        raise InvalidRate("count must be above 0, or the funnel would never drain.")
    return Throttle("funnel", Rate(count, period, capacity))


def _check_quantity(quantity: int, capacity: int) -> None:
    if type(quantity) is not int or not 0 <= quantity <= capacity:
        raise InvalidValue(
            f"quantity must be a whole number from 0 to {capacity:,}, the capacity, not {shortened(quantity)}: "
            "a funnel never has room for more."
        )


def _integers(decision: Decision) -> Funnel:
    retry = -1 if decision.allowed else math.ceil(decision.retry_after)
    limited = int(not decision.allowed)
    return Funnel(limited, decision.limit, decision.remaining, retry, math.ceil(decision.reset_after))
