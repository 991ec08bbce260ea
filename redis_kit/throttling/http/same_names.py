"""A check for throttles of different rates that share a name: they count apart, but lists show one of them."""

from collections.abc import Iterator
from contextlib import suppress

from django.conf import settings
from django.urls import get_resolver

from redis_kit.core.conf import Problem
from redis_kit.core.errors import ConfigurationError
from redis_kit.throttling.http.decorator import guards_of
from redis_kit.throttling.http.policies import policies
from redis_kit.throttling.http.views import routed_views
from redis_kit.throttling.throttles.throttle import Throttle


def problems() -> Iterator[Problem]:
    """Yield a problem for each name that throttles of different rates share. Imports ROOT_URLCONF."""
    rates: dict[tuple[str, str], dict[str, None]] = {}
    for throttle in _throttles():
        shown = "; ".join(map(str, throttle.rates)) or "no limit"
        rates.setdefault((throttle.name, throttle.using), {})[shown] = None
    for (name, _), different in rates.items():
        if len(different) > 1:
            yield Problem(
                "W021",
                f"Throttles with different rates have the name {name!r}: {', '.join(map(repr, different))}.",
                "They count apart, but lists show one of them. Give each its own name, "
                "or both rates to one throttle: '5/m; 100/h'.",
            )


def _throttles() -> Iterator[Throttle]:
    with suppress(ConfigurationError):  # the check of settings reports it
        yield from (policy.throttle for policy in policies())
    if getattr(settings, "ROOT_URLCONF", None):
        with suppress(Exception):  # Django's own check reports what is wrong with the routes
            for view in routed_views(get_resolver().url_patterns):
                yield from (guard.throttle for guard in guards_of(view))
