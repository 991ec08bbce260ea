"""Views: how they are found and named."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from django.conf import settings
from django.urls import URLPattern, URLResolver, get_resolver

from redis_kit.core.awaitables import bound_method


def routed_views(patterns: Iterable[URLPattern | URLResolver]) -> Iterator[Any]:
    """Yield the views behind these routes, also behind those that they include."""
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            yield from routed_views(pattern.url_patterns)
        else:
            yield pattern.callback


def loaded_views() -> list[Any]:
    """Return the views behind ROOT_URLCONF; none until that is imported, and none if a route is wrong."""
    routes = getattr(settings, "ROOT_URLCONF", None)
    if isinstance(routes, str) and routes in sys.modules:
        with suppress(Exception):  # Django's own check reports what is wrong with the routes
            return list(routed_views(get_resolver().url_patterns))
    return []


def view_path(view: Any) -> str:
    """Return the dotted path of a view: of the function, the view class, or its method other than ``dispatch``."""
    method = bound_method(view)
    if method is not None:
        return method_path(type(method.__self__), method.__name__)
    named = getattr(view, "view_class", view.func if isinstance(view, partial) else view)
    named = named if hasattr(named, "__qualname__") else type(named)
    # @api_view of Django REST framework makes a class of each function, and gives it the function's name only.
    is_renamed = not named.__qualname__.endswith(named.__name__)
    return f"{named.__module__}.{named.__name__ if is_renamed else named.__qualname__}"


def method_path(owner: type, name: str) -> str:
    """Return the dotted path of a method of a view class, that of the class for ``dispatch``."""
    path = f"{owner.__module__}.{owner.__qualname__}"
    return path if name == "dispatch" else f"{path}.{name}"
