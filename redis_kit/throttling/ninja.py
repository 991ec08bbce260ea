"""Throttle classes for Django Ninja, under the framework's names: change the import to use them."""

import threading
from typing import Any

from ninja import throttling

from redis_kit.core.primitive import with_own_init
from redis_kit.throttling.http.rate_throttle import RateThrottle
from redis_kit.throttling.values import Decision


class SimpleRateThrottle(RateThrottle, throttling.SimpleRateThrottle):
    """A limit on the requests of one ``get_cache_key()``, at ``rate`` or the rate that the settings give ``scope``.

    Several rates ("60/m; 1000/d") are one decision. Ninja calls it synchronously in async operations too. There it
    blocks the event loop for the round trip, or for the time limits of requests while the server is unavailable. See
    RateThrottle for further attributes.
    """

    framework = "ninja"

    def __init__(self, rate: Any = None) -> None:
        if rate is not None and not rate:  # the framework would take the rate of the settings
            self.read(rate)
        super().__init__(rate)
        if self.num_requests is not None:
            self.throttle()  # raises for wrong options where the API is built, not at the first request

    def allow_request(self, request: Any) -> bool:
        """Count a request and return whether it is allowed. See RateThrottle for outages."""
        return self.decide(request)

    @property
    def decision(self) -> Decision | None:
        """The decision on the last call of this thread; one instance serves all threads."""
        return getattr(self._here, "decision", None)

    @decision.setter
    def decision(self, decision: Decision | None) -> None:
        self._here.decision = decision

    @property
    def _here(self) -> Any:
        return vars(self).setdefault("_of_thread", threading.local())


@with_own_init
class AnonRateThrottle(throttling.AnonRateThrottle, SimpleRateThrottle):
    """A limit per address, for requests without ``request.auth``; scope ``anon``."""


@with_own_init
class AuthRateThrottle(throttling.AuthRateThrottle, SimpleRateThrottle):
    """A limit per ``request.auth``, or per address for requests without it; scope ``auth``."""


@with_own_init
class UserRateThrottle(throttling.UserRateThrottle, SimpleRateThrottle):
    """A limit per user, or per address for requests without a user; scope ``user``."""
