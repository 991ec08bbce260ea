"""How many jobs a worker claims at once: few enough that none waits long, enough that calls are rare."""

AHEAD = 0.01  # seconds of work that is claimed beyond the free threads
MOST = 100  # jobs: the server must not be held for long
GROWTH = 4


class Prefetch:
    """Claims, beyond the free threads, as many jobs as were done in 10 ms of the last batch: none if jobs are long."""

    def __init__(self) -> None:
        self._ahead, self._claimed, self._since = 0, 0, 0.0

    def room(self, free: int, now: float) -> int:
        """Return how many jobs to claim for ``free`` threads, when all jobs of the last claim have begun."""
        if self._claimed:
            done = int(self._claimed / max(now - self._since, 1e-6) * AHEAD)
            self._ahead = min(done, MOST, GROWTH * (self._ahead + 1))
        return free + self._ahead

    def claimed(self, count: int, now: float) -> None:
        """Note how many jobs came."""
        self._claimed, self._since = count, now

    def slow_down(self) -> None:
        """Claim for free threads only: jobs had to wait."""
        self._ahead, self._claimed = 0, 0
