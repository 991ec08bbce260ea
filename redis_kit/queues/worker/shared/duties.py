"""What a worker does from time to time beside its jobs: heartbeats, schedules, repairs."""

import logging
from math import inf
from time import monotonic

from redis_kit.core.logs.rate_limit import LogRateLimit
from redis_kit.queues.engine.feature import Duty
from redis_kit.queues.worker.shared.reconnect import UNAVAILABLE

logger = logging.getLogger("redis_kit.worker")
FLOOR = 0.01  # seconds between two runs of a duty, whatever it asks for
AGAIN = 0.5  # seconds from a run that failed to the next one
TURN = 1.0  # seconds after which run() returns to its caller, though more is due


class Duties:
    """Runs each duty when it is due.

    The first duty of the list goes before all others. These take turns: the one that has been due for longest is next.
    So a duty that is always due, or that takes long, keeps no other one from its turn.
    """

    def __init__(self, *duties: Duty) -> None:
        self._duties = duties
        self._not_before = dict.fromkeys(range(len(duties)), 0.0)  # on the monotonic clock
        self._log_limit = LogRateLimit()

    @property
    def next(self) -> float:
        """Return when a duty is due next, on the monotonic clock; inf without any."""
        return min(map(self._due, self._not_before), default=inf)

    def run(self) -> None:
        """Run what is due, for about a second at most."""
        end = monotonic() + TURN
        while (number := self._first_due()) is not None:
            if not self._run(number) or monotonic() >= end:
                return

    def _due(self, number: int) -> float:
        return max(self._duties[number].due, self._not_before[number])

    def _first_due(self) -> int | None:
        now = monotonic()
        due = [number for number in self._not_before if self._due(number) <= now]
        return 0 if 0 in due else min(due, key=self._due, default=None)

    def _run(self, number: int) -> bool:
        """Run a duty, and return whether the server is available."""
        duty = self._duties[number]
        pause = FLOOR
        try:
            duty.run()
        except UNAVAILABLE:
            pause = AGAIN
            return False
        except Exception:
            pause = AGAIN
            if self._log_limit.allows(f"{number}"):
                logger.exception("%s of the worker failed; it runs again.", type(duty).__name__)
        finally:
            self._not_before[number] = monotonic() + pause
        return True
