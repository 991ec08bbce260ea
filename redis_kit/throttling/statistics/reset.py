"""Forgetting the calls of an identity."""

from redis_kit.core import scripts
from redis_kit.core.flow import Flow
from redis_kit.core.keys import hashed
from redis_kit.throttling.engine import refusal_cache
from redis_kit.throttling.engine.base import BaseThrottle
from redis_kit.throttling.rules.storage import FIND

RESET = scripts.load("redis_kit.throttling", "reset")


def by_identity(throttle: BaseThrottle, identity: str) -> Flow[bool]:
    """Forget the calls of an identity and its automatic ban. One round trip."""
    keys = throttle.keys(identity)
    removed = yield RESET([keys.state, keys.standing, keys.rules], [throttle.entry(identity)])
    refusal_cache.forget(throttle.id, identity)
    throttle.local_buckets.forget(identity)
    return bool(removed)


def reset_by_hash(throttle: BaseThrottle, identity_hash: str) -> bool:
    """Do the same as Throttle.reset(), given the hash that lists show. Two round trips. Raises RedisUnavailable."""
    return bool(throttle.carry_out(_by_hash(throttle, identity_hash)))


def _by_hash(throttle: BaseThrottle, identity_hash: str) -> Flow[bool]:
    keys = throttle.keys_of(identity_hash)
    entry = yield FIND([keys.rules, keys.offenders], [identity_hash])
    removed = yield RESET([keys.state, keys.standing, keys.rules], [entry])
    refusal_cache.forget_where(
        lambda throttle_id, identity: throttle_id == throttle.id and hashed(identity) == identity_hash
    )
    return bool(removed)
