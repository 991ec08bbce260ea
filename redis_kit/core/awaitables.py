"""Functions that may be async: which ones are, and what their calls return."""

from collections.abc import Awaitable, Callable
from functools import partial
from inspect import isawaitable, iscoroutine, unwrap
from typing import Any

from asgiref.sync import iscoroutinefunction
from django.dispatch import Signal


def is_async(function: Any) -> bool:
    """Tell whether a call returns an awaitable: also of an object, and of the bound ``dispatch()`` of an async view."""
    method = bound_method(function)
    is_dispatch = getattr(method, "__name__", "") == "dispatch"
    return (
        iscoroutinefunction(function)
        or iscoroutinefunction(type(function).__call__)
        or (is_dispatch and bool(getattr(method.__self__, "view_is_async", False)))
    )


def bound_method(function: Any) -> Any:
    """Return the method that Django's ``method_decorator`` bound to its instance; None for other functions."""
    inner = unwrap(function, stop=lambda wrapped: isinstance(wrapped, partial))
    return inner.func if isinstance(inner, partial) and hasattr(inner.func, "__self__") else None


async def maybe_await(result: Any) -> Any:
    """Return a result, awaited if it is awaitable."""
    return await result if isawaitable(result) else result


class Result:
    """A step of a flow without a client: what a function of the project returned, awaited in async code."""

    __slots__ = ("message", "result")

    def __init__(self, result: Any, message: str) -> None:
        self.result, self.message = result, message

    def run(self, client: Any) -> Any:
        """Return it. Raises TypeError with the message if it is awaitable."""
        return not_awaitable(self.result, self.message)

    async def arun(self, client: Any) -> Any:
        """Await it if it is awaitable."""
        return await maybe_await(self.result)


class LocalCall:
    """A step of a flow without a client: the call of a function, in async code of its twin."""

    __slots__ = ("args", "function", "options", "twin")

    def __init__(
        self, function: Callable[..., Any], twin: Callable[..., Awaitable[Any]], *args: Any, **options: Any
    ) -> None:
        self.function, self.twin, self.args, self.options = function, twin, args, options

    def run(self, client: Any) -> Any:
        """Call the function."""
        return self.function(*self.args, **self.options)

    async def arun(self, client: Any) -> Any:
        """Call its twin."""
        return await self.twin(*self.args, **self.options)


def sending(signal: Signal, sender: type, **arguments: Any) -> LocalCall:
    """Return the step of a flow that sends a signal. Django logs what receivers raise."""
    return LocalCall(signal.send_robust, signal.asend_robust, sender, **arguments)


def not_awaitable(result: Any, message: str, *values: Any) -> Any:
    """Return the result of a sync function. Raises TypeError if it is awaitable, with the message and its values."""
    if isawaitable(result):
        if iscoroutine(result):
            result.close()
        raise TypeError(message.format(*values))
    return result
