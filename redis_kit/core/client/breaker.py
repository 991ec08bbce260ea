"""A circuit breaker per server and process, so that an outage costs a request less than a millisecond."""

import logging
import random
import threading
from collections import deque
from collections.abc import Callable
from time import monotonic

from redis_kit.core.errors import RedisUnavailable
from redis_kit.core.signals import redis_recovered, redis_unavailable, send_safely

logger = logging.getLogger("redis_kit.connections")

FAILURES = 3
WINDOW = 1.0  # seconds in which FAILURES open it
PROBE = 1.0  # seconds between probes, at most


class Breaker:
    """Opens after 3 failures in a second. Then one thread, not a caller, asks each second until the server answers."""

    def __init__(self, alias: str, probe: Callable[[], object]) -> None:
        self.alias = alias
        self.is_open = False
        self.reason = ""  # the message of the last failure
        self._probe = probe
        self.failures: deque[float] = deque(maxlen=FAILURES)
        self._lock = threading.Lock()
        self._retired = threading.Event()
        self._thread: threading.Thread | None = None
        self._next_start = 0.0

    def refuse(self) -> None:
        """Raise RedisUnavailable for a caller that met the open breaker. Nothing was sent.

        If the thread is gone, the caller starts it again. If none can be started, one caller a second asks the server
        itself, and goes on if it answers.
        """
        is_probing = self._thread is not None and self._thread.is_alive()
        if not is_probing and self._is_due() and not self._start() and self._recovered():
            return
        error = RedisUnavailable(
            f"The Redis connection {self.alias!r} is unavailable: its circuit breaker is open, and tries again each "
            f"second. {self.reason}"
        )
        self.sign(error, self.reason)
        raise error

    def sign(self, error: RedisUnavailable, reason: str) -> None:
        """Write the connection's alias and the reason on an error."""
        error.using, error.reason = self.alias, reason

    def succeeded(self) -> None:
        """Forget earlier failures."""
        self.failures = deque(maxlen=FAILURES)  # not cleared: another thread may be reading it

    def failed(self, error: RedisUnavailable) -> None:
        """Count a failure, and open at the third in a second. The error gets the connection's alias."""
        self.sign(error, str(error))
        with self._lock:
            self.reason = error.reason
            now = monotonic()
            failures = self.failures
            failures.append(now)
            recent = len(failures) == FAILURES and now - failures[0] <= WINDOW
            if self.is_open or not recent or self._retired.is_set():
                return
            self.is_open = True
            self._next_start = now + PROBE
        self._start()
        logger.error("The Redis connection %r is unavailable; failure policies apply: %s", self.alias, error)
        send_safely(redis_unavailable, Breaker, using=self.alias, error=error)

    def retire(self) -> None:
        """Stop probing: the connection is being dropped."""
        self._retired.set()

    def _is_due(self) -> bool:
        """Tell one caller a second that it may start the thread."""
        with self._lock:
            now = monotonic()
            if not self.is_open or self._retired.is_set() or now < self._next_start:
                return False
            self._next_start = now + PROBE
            return True

    def _start(self) -> bool:
        """Start the thread; False if the system allows no more."""
        self._thread = threading.Thread(
            target=self._probe_until_recovered, name=f"redis-kit-breaker-{self.alias}", daemon=True
        )
        try:
            self._thread.start()
        except RuntimeError:
            return False
        return True

    def _probe_until_recovered(self) -> None:
        while not self._retired.wait(PROBE * random.uniform(0.7, 1.0)):  # noqa: S311 -- spreads probes, hides nothing
            if self._recovered():
                return

    def _recovered(self) -> bool:
        """Ask the server once, and close if it answers."""
        try:
            self._probe()
        except Exception:  # any error means: still unavailable
            return False
        with self._lock:
            self.succeeded()
            self.is_open = False
        logger.warning("The Redis connection %r is available again.", self.alias)
        send_safely(redis_recovered, Breaker, using=self.alias)
        return True
