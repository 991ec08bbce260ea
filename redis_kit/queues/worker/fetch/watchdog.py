"""Which queues only this worker may know to have work, and since when: that must not wait for its threads."""

from math import inf


class Duties:
    """A queue is to be asked from a moment on the monotonic clock, after a sign or at the time of its next job."""

    def __init__(self, count: int) -> None:
        self._since = [inf] * count

    def take(self, number: int, at: float) -> None:
        """Note that a queue is to be asked from then on."""
        self._since[number] = min(self._since[number], at)

    def do(self, number: int) -> None:
        """Note that a queue is about to be asked: what it tells is taken from here on."""
        self._since[number] = inf

    def first(self) -> float:
        """Return since when the first queue is to be asked; infinite when none is."""
        return min(self._since)

    def neglected(self, since: float) -> list[int]:
        """Return the queues that should have been asked since then, and forget that."""
        found = [number for number, at in enumerate(self._since) if at <= since]
        for number in found:
            self.do(number)
        return found
