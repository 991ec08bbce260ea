"""The timer of a worker's wake-ups: when to claim, when to acknowledge, and which queues must not be forgotten."""

from math import inf
from threading import Condition, Lock
from time import monotonic
from typing import NamedTuple

from redis_kit.queues.worker.fetch.claimed_jobs import ClaimedJobs

LIMIT = 0.03  # seconds: how long a claimed job, an acknowledgement or a wake-up may wait
RECENT = 0.1  # seconds after a claim in which the watch wakes every LIMIT
NOW, NEVER = 0.0, inf  # moments on the monotonic clock


class Due(NamedTuple):
    """The work that is due: a claim, acknowledgements, jobs that wait too long, queues with a neglected wake-up."""

    claim: bool
    flush: bool
    stale: bool
    neglected: list[int]


class Watchdog:
    """A wake-up is acted on, or passed on to another worker, within 30 ms.

    All moments are guarded by one lock, under which no other one is taken. ``claim_at`` says when the server is next to
    be asked for jobs.
    """

    def __init__(self, queues: int) -> None:
        self._changed = Condition(Lock())
        self.claim_at = NOW
        self._flush_at = self._wakes_at = NEVER
        self._wanted_at = [NEVER] * queues  # when each queue is to be asked, as far as only this worker may know

    def claim_by(self, at: float) -> bool:
        """Have the server asked at this moment at the latest. True if that is now, so a thread must be woken."""
        with self._changed:
            if at <= monotonic():
                self.claim_at = NOW
                return True
            self.claim_at = min(self.claim_at, at)
            self._wake_by(at)
            return False

    def flush_by(self, at: float) -> None:
        """Have the server told what is done, at this moment at the latest."""
        with self._changed:
            self._flush_at = min(self._flush_at, at)
            self._wake_by(at)

    def want(self, number: int, at: float) -> None:
        """Note that a queue is to be asked from this moment on, and that other workers may not know."""
        with self._changed:
            self._wanted_at[number] = min(self._wanted_at[number], at)

    def asks(self, number: int) -> None:
        """Note that a queue is about to be asked: its answer says when to ask again."""
        with self._changed:
            self._wanted_at[number] = NEVER

    def begins(self, *, claim: bool) -> None:
        """Note that an exchange begins. Later requests need another one."""
        with self._changed:
            self._flush_at = NEVER
            if claim:
                self.claim_at = NEVER

    def ended(self) -> None:
        """Note that an exchange has ended: what it left undone is watched from now on."""
        with self._changed:
            self._wake_by(min(self._wanted_at) + LIMIT)

    def came(self, at: float) -> None:
        """Note that jobs which may have to wait for a thread came at this moment."""
        with self._changed:
            self._wake_by(at + LIMIT)

    def look(self) -> None:
        """Look again at what is due."""
        with self._changed:
            self._changed.notify()

    def wait(self, claimed: ClaimedJobs) -> Due:
        """Wait until something is due, or look() is called. A wake-up that is neglected is returned once."""
        with self._changed:
            self._changed.wait(self._seconds(claimed))
            now = monotonic()
            neglected = [number for number, at in enumerate(self._wanted_at) if at <= now - LIMIT]
            for number in neglected:
                self._wanted_at[number] = NEVER
            stale = bool(claimed.jobs) and now - claimed.since > LIMIT
            return Due(self.claim_at <= now, self._flush_at <= now, stale, neglected)

    def _wake_by(self, at: float) -> None:
        if at < self._wakes_at:
            self._changed.notify()

    def _seconds(self, claimed: ClaimedJobs) -> float | None:
        """Return the seconds until something can become due; None if nothing is planned."""
        if claimed.stopped:
            return 0.0
        now = monotonic()
        ends = [claimed.since + LIMIT] if claimed.jobs else []
        if now - claimed.since < RECENT:
            ends.append(now + LIMIT)  # saves a wake-up of this thread with each batch
        if now < self.claim_at < NEVER:
            ends.append(self.claim_at)
        self._wakes_at = min([*ends, self._flush_at, min(self._wanted_at) + LIMIT])
        return None if self._wakes_at == NEVER else max(0.0, self._wakes_at - now) + 0.0002
