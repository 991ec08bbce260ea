"""The order in which a worker asks its queues."""

import random
from collections.abc import Sequence


class Rotation:
    """Strict: the first queue that has jobs. By weight: each queue comes first as often as its weight says."""

    def __init__(self, count: int, weights: Sequence[int] | None = None) -> None:
        self._strict, self._weights = range(count), weights

    def numbers(self) -> Sequence[int]:
        """Return the numbers of the queues in the order of this time."""
        if self._weights is None:
            return self._strict
        # Each queue has a random wait, shorter for heavier queues, and the shortest comes first: Efraimidis and
        # Spirakis, "Weighted random sampling with a reservoir" (2006).
        waits = [random.expovariate(weight) for weight in self._weights]
        return sorted(self._strict, key=waits.__getitem__)
