"""A thread's alarm: it sleeps until the earliest moment that anyone asked for."""

from threading import Condition
from time import monotonic


class Alarm:
    """Set by any thread, waited for by one."""

    def __init__(self) -> None:
        self._condition = Condition()
        self._at: float | None = None

    def set(self, seconds: float) -> None:
        """Ring after this time, unless it is to ring before."""
        at = monotonic() + seconds
        with self._condition:
            if self._at is None or at < self._at:
                self._at = at
                self._condition.notify()

    def wait(self) -> None:
        """Sleep until it rings."""
        with self._condition:
            while self._at is None or self._at > monotonic():
                self._condition.wait(None if self._at is None else self._at - monotonic())
            self._at = None
