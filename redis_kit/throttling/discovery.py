"""The throttles of a site: those that its settings name, and those that its code has built."""

from redis_kit.throttling import logins
from redis_kit.throttling.engine.registry import by_name, registered
from redis_kit.throttling.policy_settings import policies
from redis_kit.throttling.throttles.throttle import Throttle


def known() -> list[Throttle]:
    """Return the throttles that this process can know, sorted by name.

    Raises ConfigurationError where the settings name one that can't be.
    """
    named = [policy.throttle for policy in policies()]
    return by_name([*registered(), *logins.throttles(), *named])
