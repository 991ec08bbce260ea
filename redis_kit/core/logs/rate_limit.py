"""Log lines about something that fails with each try: one a minute."""

from collections.abc import Callable
from time import monotonic

PAUSE = 60.0  # seconds between two lines about the same subject


class LogRateLimit:
    """Remembers when each subject was logged."""

    def __init__(self) -> None:
        self._next: dict[str, float] = {}

    def allows(self, subject: str) -> bool:
        """Tell whether to log a line about a subject now. If so, it counts as logged."""
        now = monotonic()
        if now <= self._next.get(subject, 0):
            return False
        self._next[subject] = now + PAUSE
        return True

    def log(self, write: Callable[..., None], subject: str, text: str, *details: object) -> None:
        """Log a line about a subject by ``write``, a method of a logger, if allows() says so."""
        if self.allows(subject):
            write(text, *details, stacklevel=2)
