"""The throttles of views of Django REST framework, which would build them at their first request."""

import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Any

from django.conf import settings
from django.urls import get_resolver

from redis_kit.throttling.http.default_classes import Default, of_scope
from redis_kit.throttling.http.rate_throttle import RateThrottle
from redis_kit.throttling.http.views import routed_views
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
            views = routed_views(get_resolver().url_patterns)
            classes = dict.fromkeys(chain.from_iterable(map(_of_view, views)))
    for kind, scope in classes:
        if scope or not hasattr(kind, "scope_attr"):  # without a scope a ScopedRateThrottle has no limit
            with suppress(Exception):  # the framework reports it at the first request
                built.append(Default("", partial(of_scope, kind, scope) if scope else kind).throttle())
    return [throttle for throttle in built if throttle]


def _of_view(view: Any) -> Iterator[tuple[Any, str | None]]:
    """Yield the throttle classes of a view, with the scope of those whose view chooses it."""
    if isinstance(kind := getattr(view, "cls", None), type):
        # The routes of a view set's extra actions have options in place of the class's attributes.
        options = {**getattr(view, "initkwargs", {})}
        for throttle in options.get("throttle_classes", getattr(kind, "throttle_classes", None)) or ():
            if isinstance(throttle, type) and issubclass(throttle, RateThrottle):
                attribute = getattr(throttle, "scope_attr", "")
                yield throttle, options.get(attribute, getattr(kind, attribute, None)) if attribute else None
