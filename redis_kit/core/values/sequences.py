"""Values that come several at a time."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

from django.utils.functional import Promise

from redis_kit.core.errors import InvalidValue
from redis_kit.core.text import shortened

Item = TypeVar("Item")


def batched(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yield lists of ``size`` items, the last one with what remains."""
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


def several(values: Any, name: str = "values") -> Iterable[Any]:
    """Return values. Raises InvalidValue for a single one, such as a text, whose characters are not values."""
    if isinstance(values, (str, bytes, Promise)) or not isinstance(values, Iterable):
        raise InvalidValue(f"Give a list of {name}, not {shortened(values)}.")
    return values
