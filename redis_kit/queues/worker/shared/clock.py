"""Whether the server's clock went back, as heartbeats tell it beside this machine's monotonic clock."""

import logging
from collections.abc import Mapping
from math import ceil
from time import monotonic

logger = logging.getLogger("redis_kit.worker")
TOLERANCE = 1.0  # seconds; clocks are corrected by less than that all the time
SHOWN = 3600.0  # seconds for which it is told, at least


class ServerClock:
    """Compares what the servers of a worker's queues say the time is. A fail-over to a slower clock counts, too."""

    def __init__(self) -> None:
        self._least: dict[str, float] = {}  # by how much a server's clock is ahead of the monotonic one, at least
        self._seconds = self._until = 0.0

    def note(self, times: Mapping[str, float], sent: float, received: float) -> None:
        """Take in the time on the server of each queue, asked for and answered at these monotonic times."""
        found: dict[str, float] = {}
        for name, now in times.items():
            back = self._least.get(name, now - sent) - (now - sent)
            if back > TOLERANCE:
                found[name] = back
            self._least[name] = now - received
        if found:
            self._seconds = max(found.values())
            self._until = monotonic() + max(SHOWN, self._seconds)
            text = (
                "The clock of the Redis server went back by %.1f s (%s). Until it has caught up, scheduled jobs begin "
                "late by that time, and so do the jobs of workers that died before."
            )
            logger.error(text, self._seconds, ", ".join(map(ascii, found)))

    @property
    def went_back(self) -> int:
        """Return by how many seconds it went back; 0 when it has caught up, and an hour has passed."""
        return ceil(self._seconds) if monotonic() < self._until else 0
