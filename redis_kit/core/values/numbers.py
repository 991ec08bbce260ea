"""Numbers as arguments, checked before anything is sent."""

from typing import Any, TypeGuard

from redis_kit.core.errors import InvalidValue
from redis_kit.core.text import shortened


def is_whole(value: Any) -> TypeGuard[int]:
    """Tell whether a value is an int; True and False are none."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> TypeGuard[float]:
    """Tell whether a value is an int or a float; True and False are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def whole_number(name: str, value: Any, allowed: tuple[int, int]) -> int:
    """Return a whole number. Raises InvalidValue naming the range."""
    least, most = allowed
    if not is_whole(value) or not least <= value <= most:
        raise InvalidValue(f"{name} must be a whole number from {least:,} to {most:,}, not {shortened(value)}.")
    return value


def seconds(name: str, value: Any, allowed: tuple[float, float]) -> float:
    """Return a number of seconds as a float. Raises InvalidValue naming the range."""
    least, most = allowed
    if not is_number(value) or not least <= value <= most:
        raise InvalidValue(f"{name} must be a number of seconds from {least:g} to {most:,.0f}, not {shortened(value)}.")
    return float(value)
