"""What comes again with each try is logged once a minute."""

from time import monotonic

PAUSE = 60.0  # seconds between two log lines about the same thing


class Complaints:
    """Remembers what was complained of."""

    def __init__(self) -> None:
        self._next: dict[str, float] = {}

    def due(self, about: str) -> bool:
        """Say whether to complain of something now, and take it that this is done."""
        now = monotonic()
        if now <= self._next.get(about, 0):
            return False
        self._next[about] = now + PAUSE
        return True
