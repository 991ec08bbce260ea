"""The report of a throttle in shadow mode."""

from redis_kit.core import scripts
from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow
from redis_kit.core.steps import Batch, Call
from redis_kit.throttling.engine.demand import Report, demand, summed
from redis_kit.throttling.statistics.counters import MOST
from redis_kit.throttling.throttles.throttle import Throttle

TOTALS = scripts.load("redis_kit.throttling", "totals")


def report(throttle: Throttle) -> Report:
    """Return what a throttle in shadow mode saw, and the rate to propose. One round trip.

    Raises InvalidValue for a throttle that is not in shadow mode or has no rate, and RedisUnavailable.
    """
    found: Report = throttle.carry_out(_report(throttle))
    return found


async def areport(throttle: Throttle) -> Report:
    """See report()."""
    found: Report = await throttle.acarry_out(_report(throttle))
    return found


def _report(throttle: Throttle) -> Flow[Report]:
    if not reports(throttle):
        raise InvalidValue(f"The throttle {throttle.name!r} has no report: it needs shadow=True and a rate.")
    return (yield from reading(throttle))


def reports(throttle: Throttle) -> bool:
    """Say whether a throttle has a report."""
    return bool(throttle.shadow and throttle.limited)


def reading(throttle: Throttle) -> Flow[Report]:
    """Read the report of a throttle that has one. One round trip."""
    totals = TOTALS([throttle.key("minutes")], [MOST])
    (allowed, refused), fields = yield Batch([totals, Call("HGETALL", demand(throttle))])
    return summed(throttle, allowed, refused, fields)
