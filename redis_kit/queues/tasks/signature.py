"""The signatures of tasks, cached."""

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from inspect import Parameter
from typing import Any


@cache
def of(function: Callable[..., Any]) -> inspect.Signature:
    """Return the signature of a function."""
    return inspect.signature(function)


@cache
def is_coroutine(function: Callable[..., Any]) -> bool:
    """Return whether a function is a coroutine function."""
    return inspect.iscoroutinefunction(function)


def mismatch(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Return why a function can't be called with these arguments; "" where it can."""
    if not kwargs and len(args) in _counts(function):  # a tenth of the time that bind() takes
        return ""
    if kwargs and kwargs.keys() <= _names(function):
        return _mismatch(function, len(args), tuple(kwargs))
    try:
        of(function).bind(*args, **kwargs)
    except TypeError as error:
        return str(error)
    return ""


@lru_cache(maxsize=1024)
def _mismatch(function: Callable[..., Any], count: int, names: tuple[str, ...]) -> str:
    """Return the same, given the number of positional arguments and the names of the others."""
    try:
        of(function).bind(*[None] * count, **dict.fromkeys(names))
    except TypeError as error:
        return str(error)
    return ""


@cache
def _names(function: Callable[..., Any]) -> frozenset[str]:
    return frozenset(of(function).parameters)


@cache
def _counts(function: Callable[..., Any]) -> range:
    """Return the numbers of positional arguments that a call without keyword arguments may have."""
    parameters = list(of(function).parameters.values())
    needed = {parameter.kind for parameter in parameters if parameter.default is Parameter.empty}
    if Parameter.KEYWORD_ONLY in needed:
        return range(0)
    kinds = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    positional = [parameter for parameter in parameters if parameter.kind in kinds]
    most = sys.maxsize if Parameter.VAR_POSITIONAL in needed else len(positional) + 1
    return range(sum(parameter.default is Parameter.empty for parameter in positional), most)
