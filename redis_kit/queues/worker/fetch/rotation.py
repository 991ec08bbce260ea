"""The order in which a worker asks its queues, and the shards of each."""

import random
from collections.abc import Sequence
from itertools import accumulate
from time import monotonic

STAY = 0.1  # seconds for which a shard comes first: one call acknowledges its jobs and claims others there


class Rotation:
    """Strict: the first queue that has jobs. By weight: each queue comes first as often as its weight says.

    ``shards`` is how many each queue has. One of them, chosen at random, comes first for a tenth of a second.
    """

    def __init__(self, shards: Sequence[int], weights: Sequence[int] | None = None) -> None:
        self._weights = weights
        self._queues = range(len(shards))
        self._shards = [range(end - count, end) for end, count in zip(accumulate(shards), shards, strict=True)]
        self._is_sharded = max(shards) > 1
        self._first, self._until = 0.0, 0.0

    def numbers(self) -> Sequence[int]:
        """Return the numbers of all shards, in the order of this time. Those of a queue follow each other."""
        queues = self._ordered()
        if not self._is_sharded:
            return queues
        if monotonic() > self._until:
            self._first, self._until = random.random(), monotonic() + STAY  # noqa: S311 -- spreads load
        return [number for queue in queues for number in self._turned(self._shards[queue])]

    def _ordered(self) -> Sequence[int]:
        if self._weights is None:
            return self._queues
        # Each queue has a random wait, shorter for heavier queues, and the shortest comes first: Efraimidis and
        # Spirakis, "Weighted random sampling with a reservoir" (2006).
        waits = [random.expovariate(weight) for weight in self._weights]
        return sorted(self._queues, key=waits.__getitem__)

    def _turned(self, shards: range) -> list[int]:
        at = int(self._first * len(shards))
        return [*shards[at:], *shards[:at]]
