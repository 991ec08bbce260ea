"""The book's funnel, with the answer of CL.THROTTLE."""

import math
from functools import lru_cache
from typing import NamedTuple

from redis_kit.throttling.throttles.throttle import Throttle
from redis_kit.throttling.values.decision import Decision
from redis_kit.throttling.values.rates import InvalidRate, Rate


class Funnel(NamedTuple):
    """The five integers of redis-cell's CL.THROTTLE, in its order; times in whole seconds, rounded up."""

    limited: int
    limit: int
    remaining: int
    retry_after: int
    reset_after: int


def funnel(key: str, capacity: int, count: int, period: float, quantity: int = 1) -> Funnel:
    """Pour ``quantity`` into a funnel that holds ``capacity`` and lets ``count`` run out in ``period`` seconds.

    Returns 1 where it was refused, else 0; the capacity; what room is left; the seconds until as much has room, -1
    where it was let in; the seconds until the funnel is empty. ``capacity`` is CL.THROTTLE's max_burst plus 1, 1 or
    more; a ``quantity`` of 0 only looks, more than ``capacity`` raises InvalidValue. One round trip. The failure policy
    of throttles holds. Source: "Redis Deep Adventure" (Qian Wenpin), funnel throttling; GCRA.
    """
    limit = _throttle(capacity, count, period)
    return _integers(limit.hit(key, cost=quantity) if quantity else limit.peek(key))


async def afunnel(key: str, capacity: int, count: int, period: float, quantity: int = 1) -> Funnel:
    """See funnel()."""
    limit = _throttle(capacity, count, period)
    return _integers(await limit.ahit(key, cost=quantity) if quantity else await limit.apeek(key))


@lru_cache(maxsize=256)
def _throttle(capacity: int, count: int, period: float) -> Throttle:
    if type(capacity) is not int or capacity < 1:
        raise InvalidRate(f"capacity must be a whole number of 1 or more, not {capacity!r}.")
    return Throttle("funnel", Rate(count, period, capacity))


def _integers(decision: Decision) -> Funnel:
    retry = -1 if decision.allowed else math.ceil(decision.retry_after)
    limited = int(not decision.allowed)
    return Funnel(limited, decision.limit, decision.remaining, retry, math.ceil(decision.reset_after))
