"""Endings beside success and failure: the job goes back to its queue, or leaves this worker."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from redis_kit.core.errors import InvalidValue
from redis_kit.core.logs.error_text import text_of
from redis_kit.core.signals import send_safely
from redis_kit.core.terminal import rounded_duration
from redis_kit.queues import signals, validation
from redis_kit.queues.engine.job import Job
from redis_kit.queues.errors import Interrupted, Snooze
from redis_kit.queues.worker.run.attempt import Attempt, Failed, failed_with
from redis_kit.queues.worker.run.outcome import FailedAttempt, cancelled_attempt
from redis_kit.queues.worker.shared.done import Done, RecentAcks
from redis_kit.queues.worker.shared.logs import guarded

logger = logging.getLogger("redis_kit.worker")


class Claims(Protocol):
    """The part of the fetcher that a runner needs. ``recent`` remembers which ends of jobs were recorded."""

    recent: RecentAcks

    def take_more(self, slot: int, number: int, limit: int) -> list[Job]:
        """Give a thread that has a job the next ones too, if they are of this queue."""

    def put_back(self, slot: int, number: int, jobs: Sequence[Job]) -> None:
        """Take jobs back that take_more() gave last."""

    def put_off(self, number: int, jobs: Sequence[Job], seconds: float) -> None:
        """Return jobs to their queue, and claim none there for some seconds."""

    def retry_later(self, call: Callable[[], None]) -> None:
        """Make a call that failed again, later."""


class NoClaims:
    """The claims of a thread that claims each of its jobs by itself: no others wait."""

    def __init__(self) -> None:
        self.recent = RecentAcks()

    def take_more(self, slot: int, number: int, limit: int) -> list[Job]:
        """See Claims."""
        return []

    def put_back(self, slot: int, number: int, jobs: Sequence[Job]) -> None:
        """See Claims."""

    def put_off(self, number: int, jobs: Sequence[Job], seconds: float) -> None:
        """See Claims."""

    def retry_later(self, call: Callable[[], None]) -> None:
        """See Claims. Nothing is done: the claim ends with its lease."""


class Runner(Protocol):
    """The runner of jobs, as far as endings use it."""

    claims: Claims

    def load(self, attempt: Attempt) -> None:
        """Read the call of an attempt."""

    def record(self, failure: FailedAttempt) -> None:
        """Record a failed attempt."""


@dataclass(frozen=True)
class Postponed:
    """The ending of an attempt that does not count: the job goes back to its queue."""

    attempt: Attempt

    @property
    def why(self) -> str:
        """Return why it goes back."""
        raise NotImplementedError

    def give_back(self) -> FailedAttempt | None:
        """Return it to its queue. The result is a failure to record in place of that, if there is one."""
        raise NotImplementedError


class Departure:
    """The ending of an attempt whose job leaves this worker, perhaps with others."""

    def carry_out(self, attempt: Attempt, runner: Runner) -> list[Done]:
        """Let it go, and return the jobs that are done here."""
        raise NotImplementedError


@dataclass(frozen=True)
class SnoozedJob(Postponed):
    """A job whose task raised Snooze, with the delay in seconds and the reason."""

    delay: float
    said: str

    @property
    def why(self) -> str:
        """Return why it goes back."""
        return "its task raised Snooze"

    def give_back(self) -> FailedAttempt | None:
        """Return it to its queue without counting an attempt. One round trip; a repeat is safe.

        If it was cancelled while it ran, the result is the failure to record.
        """
        attempt = self.attempt
        source, job, task = attempt.source, attempt.job, attempt.task
        keep = attempt.recorder.keeps(failed=True) if attempt.recorder else 0
        if source.snooze(job, self.delay, expires=attempt.call.expires, why=self.said, ttl_ms=keep):
            guarded("The log of a snoozed job", self._log, None)
            send_safely(signals.job_snoozed, SnoozedJob, queue=source.queue_name, job=job, task=task, delay=self.delay)
            return None
        return cancelled_attempt(source, job, task=task, recorder=attempt.recorder)

    def _log(self) -> None:
        ending = f": {self.said!a}" if self.said else "."
        logger.info("%s snoozes for %s%s", _named(self.attempt), rounded_duration(self.delay), ending)


@dataclass(frozen=True)
class InterruptedJob(Postponed):
    """A job whose resumable task ended its loop as the worker stops."""

    said: str

    @property
    def why(self) -> str:
        """Return why it goes back."""
        return "its worker stops"

    def give_back(self) -> None:
        """Make it ready in its old place, without counting an attempt. One round trip; a repeat is safe."""
        self.attempt.source.release([self.attempt.job])
        guarded("The log of an interrupted job", self._log, None)

    def _log(self) -> None:
        logger.info("%s is ready again: %s.", _named(self.attempt), self.said)


def ending_of(attempt: Attempt, error: BaseException) -> Failed | Postponed:
    """Return the ending of an attempt in which this was raised."""
    kind = type(error)  # isinstance() asks the error for its class, which may raise
    if attempt.runs and issubclass(kind, Interrupted):
        return InterruptedJob(attempt, text_of(error))
    if attempt.runs and issubclass(kind, Snooze):
        try:
            delay = validation.milliseconds(error.delay, positive=True) / 1000  # type: ignore[attr-defined]
        except (InvalidValue, AttributeError):  # a subclass may have any delay
            return failed_with(attempt, error)
        return SnoozedJob(attempt, delay, text_of(error))
    return failed_with(attempt, error)


def _named(attempt: Attempt) -> str:
    return f"Job {attempt.job.id!a} of queue {attempt.source.name!a} ({attempt.task.module_path})"
