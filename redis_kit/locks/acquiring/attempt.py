"""An attempt to acquire a lease: its token, and what it tells the server each time it asks for the lease."""

from collections.abc import Sequence
from os import urandom
from time import monotonic
from typing import Any, cast

from redis_kit.core.errors import RedisFailure, RedisUnavailable
from redis_kit.core.scripts import ScriptCall
from redis_kit.locks.acquiring.local_queue import LocalQueue
from redis_kit.locks.leases.lease import LeaseSource
from redis_kit.locks.renewal.pending_releases import IN_TRANSIT

WAITER_TTL = 2500  # ms that a waiter counts as one after each request
MAX_AGE = 0.1  # share of a lease's timeout that may be over when its holder learns of the lease

Refusal = Sequence[Any]


class Attempt:
    """One attempt to acquire a lease. It waits until ``deadline``, a moment of the monotonic clock."""

    def __init__(self, timeout: float, *, wait: float) -> None:
        self.token, self.timeout, self.ttl_ms = urandom(16).hex(), timeout, round(timeout * 1000)
        self.began_at = self.sent_at = monotonic()
        self.deadline, self.blocking = self.sent_at + wait, wait > 0
        self.waiting_since = 0  # ms on the server's clock; 0 if the server has not refused it
        self.woken, self.wake_up_list, self._next_fence = 0, "", 0
        self.sent, self.refusal = False, cast(Refusal, ())
        self.late_until = 0.0  # until when a request whose reply was lost may still reach the server
        self.local_queue: LocalQueue | None = None

    @property
    def remaining(self) -> float:
        """Return for how many seconds it goes on waiting."""
        return self.deadline - monotonic()

    @property
    def waiter_ttl(self) -> int:
        """Return for how many ms the caller counts as a waiter if it is refused; 0 if it gives up then."""
        return WAITER_TTL if self.sent_at < self.deadline else 0

    def is_fresh(self, fence: int) -> bool:
        """Tell whether a lease that was granted during a wait was granted after ``sent_at``, and not long after it.

        It may have been granted before the last request and have ended since; then its fence is older than the request.
        """
        return fence >= self._next_fence and monotonic() - self.sent_at <= self.timeout * MAX_AGE

    def request(self, source: LeaseSource, *, woken: bool = False) -> ScriptCall:
        """Return the step that asks for the lease now or, if ``woken``, as soon as the wait before it ends."""
        self.sent_at, self.woken, self.sent = monotonic(), int(woken), True
        return source.acquire_step(self)

    def may_hold(self, error: BaseException) -> bool:
        """Tell whether the server may have granted the lease, or may still grant it, though an error ended the attempt.

        An error in the server's reply means that it did not, unless another request was queued behind a blocked one, or
        was lost before.
        """
        if self.sent and not (self.waiting_since or self.late_until) and isinstance(error, RedisFailure):
            return isinstance(error, RedisUnavailable) and error.indeterminate
        return self.sent

    def note_refusal(self, refusal: Refusal) -> None:
        """Note the fence that the next lease gets, which is the server's clock, and since when the caller waits.

        Before the first request it may have waited for other callers of this process.
        """
        if refusal:
            self.refusal, self._next_fence = refusal, refusal[-1]
            before = int((self.sent_at - self.began_at) * 1000)
            self.waiting_since = self.waiting_since or refusal[-1] // 1000 - before

    def note_failure(self, error: RedisFailure) -> None:
        """Note a failure after which the caller goes on: the request may have reached the server, or still reach it."""
        if isinstance(error, RedisUnavailable) and error.indeterminate:
            self.late_until = monotonic() + IN_TRANSIT
