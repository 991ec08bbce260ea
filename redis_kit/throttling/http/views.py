"""Views: how they are found and named, whether they are async, and what their functions return."""

from collections.abc import Iterable, Iterator
from functools import partial
from inspect import isawaitable, iscoroutine, unwrap
from typing import Any

from asgiref.sync import iscoroutinefunction
from django.urls import URLPattern, URLResolver


def routed_views(patterns: Iterable[URLPattern | URLResolver]) -> Iterator[Any]:
    """Yield the views behind these routes, also behind those that they include."""
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            yield from routed_views(pattern.url_patterns)
        else:
            yield pattern.callback


def is_async_view(view: Any) -> bool:
    """Return whether a view is async, also one whose method ``method_decorator`` has bound."""
    owner = getattr(_bound_method(view), "__self__", None)
    return iscoroutinefunction(view) or bool(getattr(owner, "view_is_async", False))


def view_path(view: Any) -> str:
    """Return the dotted path of a view: of the function, the view class, or its method other than ``dispatch``."""
    method = _bound_method(view)
    if method is not None:
        owner = type(method.__self__)
        path = f"{owner.__module__}.{owner.__qualname__}"
        return path if method.__name__ == "dispatch" else f"{path}.{method.__name__}"
    named = getattr(view, "view_class", view.func if isinstance(view, partial) else view)
    named = named if hasattr(named, "__qualname__") else type(named)
    # @api_view of Django REST framework makes a class of each function, and gives it the function's name only.
    is_renamed = not named.__qualname__.endswith(named.__name__)
    return f"{named.__module__}.{named.__name__ if is_renamed else named.__qualname__}"


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
