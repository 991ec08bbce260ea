"""Parts of sequences."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

Item = TypeVar("Item")


def batched(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yield lists of ``size`` items, the last one with what remains."""
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch
