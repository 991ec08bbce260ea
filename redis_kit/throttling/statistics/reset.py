"""Forgetting the calls of a caller who is known by its hash alone, as lists name it."""

from redis_kit.core.flow import Flow
from redis_kit.core.keys import hashed
from redis_kit.throttling.engine import refusal_cache
from redis_kit.throttling.rules.storage import FIND
from redis_kit.throttling.throttles.throttle import RESET, Throttle


def forget(throttle: Throttle, who: str) -> bool:
    """Do what ``reset()`` of a throttle does for a caller, given its hash. Two round trips. Raises RedisUnavailable."""
    return bool(throttle.carry_out(_forget(throttle, who)))


def _forget(throttle: Throttle, who: str) -> Flow[bool]:
    state, standing, _, _, offenders, rules = throttle.keys_of(who)
    label = yield FIND([rules, offenders], [who])
    removed = yield RESET([state, standing, rules], [label])
    refusal_cache.forget_where(lambda name, caller: name == throttle.id and hashed(caller) == who)
    return bool(removed)
