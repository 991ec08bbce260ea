"""The report of a throttle in shadow mode."""

from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow
from redis_kit.core.steps import Batch, Call
from redis_kit.throttling.counters import MINUTES, MOST
from redis_kit.throttling.shadow import Report, demand, summed
from redis_kit.throttling.throttles import Throttle


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
    if not throttle.shadow or not throttle.limited:
        raise InvalidValue(f"The throttle {throttle.name!r} has no report: it needs shadow=True and a rate.")
    counts, fields = yield Batch([MINUTES([throttle.key("minutes")], [MOST]), Call("HGETALL", demand(throttle))])
    return summed(throttle, sum(counts[1::2]), sum(counts[2::2]), fields)
