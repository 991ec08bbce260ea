"""Delays of restarts, for children that die again and again as they start."""

from time import monotonic

AT_BIRTH = 1.0  # seconds of life
QUIET = 10.0  # seconds without an early death after which they are forgotten
FIRST, LONGEST = 0.1, 5.0  # seconds


class RespawnBackoff:
    """Says when the next child may be forked: at once, unless the last ones died within a second of their start."""

    def __init__(self) -> None:
        self._deaths = 0
        self._last = 0.0
        self.until = 0.0

    def note(self, lived: float) -> None:
        """Note a death."""
        now = monotonic()
        if now - self._last > QUIET:
            self._deaths = 0
        if lived <= AT_BIRTH:
            self._deaths, self._last = self._deaths + 1, now
            if self._deaths > 1:
                self.until = now + min(LONGEST, FIRST * 2 ** (self._deaths - 2))

    def over(self) -> bool:
        """Say whether a child may be forked now."""
        return monotonic() >= self.until
