"""Throttle classes for Django REST framework, under the framework's names: change the import to use them."""

import re
from typing import Any

from django.http import HttpResponse
from rest_framework import throttling

from redis_kit.core.errors import ConfigurationError
from redis_kit.core.values.rates import Rate
from redis_kit.throttling.http.rate_throttle import RateThrottle
from redis_kit.throttling.http.responses import Verdict, add_fields


class SimpleRateThrottle(RateThrottle, throttling.SimpleRateThrottle):
    """A limit on the requests of one ``get_cache_key()``, at ``rate`` or the rate that the settings give ``scope``.

    Everything that a subclass of the framework's class overrides or sets works here, except ``cache``. Rates follow the
    framework's grammar, in which only the first letter of the period matters ("10/minutes"), or that of ``Throttle``.
    Responses have the fields RateLimit and RateLimit-Policy. See RateThrottle for further attributes.
    """

    framework = "drf"

    def read(self, rate: Any) -> tuple[Rate, ...]:
        """Return the rates that ``rate`` stands for. After a slash only the first letter, s, m, h or d, matters."""
        return super().read([_first_letter(part) for part in rate] if isinstance(rate, list) else _first_letter(rate))

    def allow_request(self, request: Any, view: Any) -> bool:
        """Count a request and return whether it is allowed. See RateThrottle for outages."""
        return self.decide(request, view)

    def annotate(self, request: Any, verdict: Verdict, *view: Any) -> None:
        """Annotate Django's request, and add the fields about limits to the headers of the view."""
        super().annotate(getattr(request, "_request", request), verdict)
        headers = getattr(view[0], "headers", None) if view else None
        if isinstance(headers, dict):
            fields = add_fields(HttpResponse(headers=headers), [verdict]).items()
            view[0].headers = headers | {name: value for name, value in fields if "RateLimit" in name}


class AnonRateThrottle(throttling.AnonRateThrottle, SimpleRateThrottle):
    """A limit per address, for requests without a user; scope ``anon``."""


class UserRateThrottle(throttling.UserRateThrottle, SimpleRateThrottle):
    """A limit per user, or per address for requests without a user; scope ``user``."""


class ScopedRateThrottle(throttling.ScopedRateThrottle, SimpleRateThrottle):
    """A limit per user or address, for the views with one ``throttle_scope``."""


class BurstSustainedThrottle(UserRateThrottle):
    """Several rates in one decision: a request is counted by all of them, or refused and counted by none.

    The rates are those of ``scopes`` in ``DEFAULT_THROTTLE_RATES``, or all in ``rate``, such as "60/m; 1000/d".
    """

    scope = "burst_sustained"
    scopes: tuple[str, ...] = ("burst", "sustained")

    def get_rate(self) -> Any:
        """Return the rates of all scopes, except those that are None."""
        if missing := [scope for scope in self.scopes if scope not in self.THROTTLE_RATES]:
            raise ConfigurationError(
                f"REST_FRAMEWORK['DEFAULT_THROTTLE_RATES'] has no {missing[0]!r}, which {type(self).__name__} needs: "
                "add it, or set the attribute 'scopes' or 'rate'."
            )
        return [rate for scope in self.scopes if (rate := self.THROTTLE_RATES[scope]) is not None] or None


def _first_letter(rate: Any) -> Any:
    return re.sub(r"/\s*([smhd])[a-z]*", r"/\1", rate) if isinstance(rate, str) else rate
