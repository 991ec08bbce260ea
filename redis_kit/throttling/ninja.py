"""Throttle classes of Django Ninja under their own names: a project changes the line that imports them."""

import threading
from typing import Any

from ninja import throttling

from redis_kit.throttling.http.rate_throttle import RateThrottle
from redis_kit.throttling.values.decision import Decision


class SimpleRateThrottle(RateThrottle, throttling.SimpleRateThrottle):
    """A limit on the requests of one ``get_cache_key()``, at ``rate`` or the rate that the settings give ``scope``.

    Several rates ("60/m; 1000/d") are one decision. Ninja asks it from async operations as from others, so there the
    event loop stands still for the round trip, and for the time limits of requests while the server is away. See
    RateThrottle for further attributes.
    """

    framework = "ninja"

    def __init__(self, rate: Any = None) -> None:
        super().__init__(rate)
        if self.num_requests is not None:
            self.limit()  # what is wrong fails where the API is built, not at the first request

    def allow_request(self, request: Any) -> bool:
        """Count a request if it has room, and say so. While the server is away, ``on_failure`` answers."""
        return self.decide(request)

    @property
    def decision(self) -> Decision | None:
        """The decision on the last call of this thread: one instance serves all threads."""
        return getattr(self._here, "decision", None)

    @decision.setter
    def decision(self, decision: Decision | None) -> None:
        self._here.decision = decision

    @property
    def _here(self) -> Any:
        return vars(self).setdefault("_of_thread", threading.local())


class AnonRateThrottle(throttling.AnonRateThrottle, SimpleRateThrottle):
    """A limit for each address from which requests without ``request.auth`` come; scope ``anon``."""


class AuthRateThrottle(throttling.AuthRateThrottle, SimpleRateThrottle):
    """A limit for each ``request.auth``, and for each address where there is none; scope ``auth``."""


class UserRateThrottle(throttling.UserRateThrottle, SimpleRateThrottle):
    """A limit for each user, and for each address where there is none; scope ``user``."""
