"""The signatures of tasks, looked at once."""

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


def mismatch(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Return why a function can't be called with these arguments; "" where it can."""
    if not kwargs and len(args) in _numbers(function):  # a tenth of the time that bind() takes
        return ""
    if kwargs and kwargs.keys() <= _names(function):
        return _wrong(function, len(args), tuple(kwargs))
    try:
        of(function).bind(*args, **kwargs)
    except TypeError as error:
        return str(error)
    return ""


@lru_cache(maxsize=1024)
def _wrong(function: Callable[..., Any], count: int, names: tuple[str, ...]) -> str:
    """Return the same for so many arguments and the names of others, which are those of parameters."""
    try:
        of(function).bind(*[None] * count, **dict.fromkeys(names))
    except TypeError as error:
        return str(error)
    return ""


@cache
def _names(function: Callable[..., Any]) -> frozenset[str]:
    return frozenset(of(function).parameters)


@cache
def _numbers(function: Callable[..., Any]) -> range:
    """Return how many arguments without names are enough, and not too many, for a call with no others."""
    parameters = list(of(function).parameters.values())
    needed = {parameter.kind for parameter in parameters if parameter.default is Parameter.empty}
    if Parameter.KEYWORD_ONLY in needed:
        return range(0)
    plain = [one for one in parameters if one.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)]
    most = sys.maxsize if Parameter.VAR_POSITIONAL in needed else len(plain) + 1
    return range(sum(one.default is Parameter.empty for one in plain), most)
