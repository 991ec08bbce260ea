"""The signatures of tasks, looked at once."""

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
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
    try:
        of(function).bind(*args, **kwargs)
    except TypeError as error:
        return str(error)
    return ""


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
