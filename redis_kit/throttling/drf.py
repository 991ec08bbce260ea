"""Throttle classes of Django REST framework under their own names: a project changes the line that imports them."""

import re
from typing import Any

from django.http import HttpResponse
from rest_framework import throttling

from redis_kit.core.errors import ConfigurationError
from redis_kit.throttling.http.rate_throttle import RateThrottle
from redis_kit.throttling.http.responses import Told, add_fields
from redis_kit.throttling.values.rates import Rate


class SimpleRateThrottle(RateThrottle, throttling.SimpleRateThrottle):
    """A limit on the requests of one ``get_cache_key()``, at ``rate`` or the rate that the settings give ``scope``.

    All that a subclass of the framework's class overrides or sets works here too; ``cache`` alone is of no use. Rates
    are the framework's, in which the first letter of the period counts ("10/minutes"), and the kit's. Responses carry
    RateLimit and RateLimit-Policy. See RateThrottle for further attributes.
    """

    framework = "drf"

    def read(self, rate: Any) -> tuple[Rate, ...]:
        """Return the rates that ``rate`` stands for; s, m, h or d decides after a slash, whatever follows it."""
        return super().read([_first_letter(one) for one in rate] if isinstance(rate, list) else _first_letter(rate))

    def allow_request(self, request: Any, view: Any) -> bool:
        """Count a request if it has room, and say so. While the server is away, ``on_failure`` answers."""
        return self.decide(request, view)

    def tell(self, request: Any, told: Told, *view: Any) -> None:
        """Leave what was decided on Django's request, and the fields with the view for its response."""
        super().tell(getattr(request, "_request", request), told)
        headers = getattr(view[0], "headers", None) if view else None
        if isinstance(headers, dict):
            fields = add_fields(HttpResponse(headers=headers), [told]).items()
            view[0].headers = headers | {name: value for name, value in fields if "RateLimit" in name}


class AnonRateThrottle(throttling.AnonRateThrottle, SimpleRateThrottle):
    """A limit for each address from which requests without a user come; scope ``anon``."""


class UserRateThrottle(throttling.UserRateThrottle, SimpleRateThrottle):
    """A limit for each user, and for each address where there is none; scope ``user``."""


class ScopedRateThrottle(throttling.ScopedRateThrottle, SimpleRateThrottle):
    """A limit for each user or address at the views of one ``throttle_scope``."""


class BurstSustainedThrottle(UserRateThrottle):
    """Several rates in one decision: a request counts against all of them, or is refused and counts against none.

    They are those of the ``scopes`` in ``DEFAULT_THROTTLE_RATES``, or all in ``rate``, such as "60/m; 1000/d".
    """

    scope = "burst_sustained"
    scopes: tuple[str, ...] = ("burst", "sustained")

    def get_rate(self) -> Any:
        """Return the rates of all scopes, without those that are None."""
        if missing := [scope for scope in self.scopes if scope not in self.THROTTLE_RATES]:
            raise ConfigurationError(
                f"REST_FRAMEWORK['DEFAULT_THROTTLE_RATES'] has no {missing[0]!r}, which {type(self).__name__} needs: "
                "add it, or set the attribute 'scopes' or 'rate'."
            )
        return [rate for scope in self.scopes if (rate := self.THROTTLE_RATES[scope]) is not None] or None


def _first_letter(rate: Any) -> Any:
    return re.sub(r"/\s*([smhd])[a-z]*", r"/\1", rate) if isinstance(rate, str) else rate
