"""The throttles of views of Django REST framework, which would build them at their first request."""

import sys
from collections.abc import Iterator
from itertools import chain
from typing import Any

from redis_kit.core.conf import Problem
from redis_kit.throttling.http import default_classes
from redis_kit.throttling.http.default_classes import ThrottleClass, built, path_of
from redis_kit.throttling.http.rate_throttle import RateThrottle
from redis_kit.throttling.http.views import loaded_views
from redis_kit.throttling.throttles.throttle import Throttle


def throttles() -> list[Throttle]:
    """Return the throttles of the views behind ROOT_URLCONF; none until that is imported.

    Views without a route, with their own ``get_throttles()`` or behind another URLconf are not found.
    """
    return built(_of_routes())


def problems() -> Iterator[Problem]:
    """Yield the rates of these throttles that can't be used, without those of the default classes."""
    checked = {(default.kind, default.scope) for default in default_classes.defaults()}
    for each in _of_routes():
        if (each.kind, each.scope) not in checked:
            yield from each.problems()


def _of_routes() -> list[ThrottleClass]:
    classes: dict[tuple[Any, str], ThrottleClass] = {}
    if "rest_framework" in sys.modules:
        for each in chain.from_iterable(map(_of_view, loaded_views())):
            classes.setdefault((each.kind, each.scope), each)
    return list(classes.values())


def _of_view(view: Any) -> Iterator[ThrottleClass]:
    """Yield the throttle classes of a view, with the scope of those whose view chooses it."""
    if isinstance(kind := getattr(view, "cls", None), type):
        # The routes of a view set's extra actions have options in place of the class's attributes.
        options = {**getattr(view, "initkwargs", {})}
        for throttle in options.get("throttle_classes", getattr(kind, "throttle_classes", None)) or ():
            if not (isinstance(throttle, type) and issubclass(throttle, RateThrottle)):
                continue
            if attribute := getattr(throttle, "scope_attr", ""):
                if scope := options.get(attribute, getattr(kind, attribute, None)):  # without one it has no limit
                    yield ThrottleClass(path_of(kind), throttle, scope)
            else:
                yield ThrottleClass(path_of(throttle), throttle)
