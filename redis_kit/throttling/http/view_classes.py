"""The throttles of views of Django REST framework, which would build them at their first request."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from django.conf import settings
from django.urls import URLPattern, URLResolver, get_resolver

from redis_kit.throttling.http.default_classes import Default, of_scope
from redis_kit.throttling.http.rate_throttle import RateThrottle
from redis_kit.throttling.throttles.throttle import Throttle


def throttles() -> list[Throttle]:
    """Return the throttles of the views behind ROOT_URLCONF; none until that is imported.

    Views without a route, with their own ``get_throttles()`` or behind another URLconf are not found.
    """
    routes = getattr(settings, "ROOT_URLCONF", None)
    built: list[Throttle | None] = []
    classes: dict[tuple[Any, str | None], None] = {}
    if isinstance(routes, str) and routes in sys.modules and "rest_framework" in sys.modules:
        with suppress(Exception):  # Django's own check reports what is wrong with the routes
            classes = dict.fromkeys(_of_views(get_resolver().url_patterns))
    for kind, scope in classes:
        if scope or not hasattr(kind, "scope_attr"):  # without a scope a ScopedRateThrottle has no limit
            with suppress(Exception):  # the framework reports it at the first request
                built.append(Default("", partial(of_scope, kind, scope) if scope else kind).throttle())
    return [throttle for throttle in built if throttle]


def _of_views(patterns: Iterable[URLPattern | URLResolver]) -> Iterator[tuple[Any, str | None]]:
    """Yield the throttle classes of all views, with the scope of those whose view chooses it."""
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            yield from _of_views(pattern.url_patterns)
        elif isinstance(view := getattr(pattern.callback, "cls", None), type):
            # The routes of a view set's extra actions have options in place of the class's attributes.
            options = {**getattr(pattern.callback, "initkwargs", {})}
            for kind in options.get("throttle_classes", getattr(view, "throttle_classes", None)) or ():
                if isinstance(kind, type) and issubclass(kind, RateThrottle):
                    attribute = getattr(kind, "scope_attr", "")
                    yield kind, options.get(attribute, getattr(view, attribute, None)) if attribute else None
