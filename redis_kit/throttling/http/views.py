"""Views: how they are found and named, whether they are async, and what their functions return."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from inspect import isawaitable, iscoroutine, unwrap
from typing import Any

from asgiref.sync import iscoroutinefunction
from django.conf import settings
from django.urls import URLPattern, URLResolver, get_resolver


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


def is_async_view(view: Any) -> bool:
    """Return whether a view is async, also one whose method ``method_decorator`` has bound."""
    owner = getattr(_bound_method(view), "__self__", None)
    return iscoroutinefunction(view) or bool(getattr(owner, "view_is_async", False))


def view_path(view: Any) -> str:
    """Return the dotted path of a view: of the function, the view class, or its method other than ``dispatch``."""
    method = _bound_method(view)
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


async def maybe_await(result: Any) -> Any:
    """Return a result, awaited if it is awaitable."""
    return await result if isawaitable(result) else result


def not_awaitable(result: Any, message: str) -> Any:
    """Return the result of a function in a sync view. Raises TypeError with the message if it is awaitable."""
    if isawaitable(result):
        if iscoroutine(result):
            result.close()
        raise TypeError(message)
    return result


def _bound_method(view: Any) -> Any:
    """Return the method of a view class that ``method_decorator`` bound to its instance; None for other views."""
    inner = unwrap(view, stop=lambda function: isinstance(function, partial))
    return inner.func if isinstance(inner, partial) and hasattr(inner.func, "__self__") else None
