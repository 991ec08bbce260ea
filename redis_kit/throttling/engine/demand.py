"""Shadow mode: how many calls identities want, counted without refusing any."""

from redis_kit.core import scripts
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.values.rates import MICROSECONDS
from redis_kit.throttling import keys
from redis_kit.throttling.engine.base import BaseThrottle

TALLY = scripts.load("redis_kit.throttling", "tally")


def tally(throttle: BaseThrottle, identity: str, cost: int) -> ScriptCall:
    """Return the step that counts what an identity wants in the current period of the first rate."""
    period = round(throttle.counted_rates[0].period * MICROSECONDS)
    return TALLY([keys.tally(throttle.keys(identity)), throttle.key(keys.DEMAND)], [throttle.now(), cost, period])
