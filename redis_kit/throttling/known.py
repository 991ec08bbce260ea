"""The throttles of a site: those that its settings name, and those that its code has built."""

from redis_kit.throttling import logins
from redis_kit.throttling.policies import policies
from redis_kit.throttling.registry import registered
from redis_kit.throttling.throttles import Throttle


def known() -> list[Throttle]:
    """Return the throttles that this process can know, in the order of their names.

    Raises ConfigurationError where the settings name one that can't be.
    """
    named = [policy.throttle for policy in policies()]
    found = {throttle.name: throttle for throttle in [*registered(), *logins.throttles(), *named]}
    return [throttle for _, throttle in sorted(found.items())]
