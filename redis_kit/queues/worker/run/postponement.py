"""Attempts that do not count: the job goes back to its queue."""

import logging
from operator import attrgetter
from typing import Any, NamedTuple

from redis_kit.core.errors import InvalidValue
from redis_kit.core.logs.error_text import text_of
from redis_kit.core.signals import send_safely
from redis_kit.core.terminal import rounded_duration
from redis_kit.queues import signals, validation
from redis_kit.queues.engine import call_shape, unknown_calls
from redis_kit.queues.engine.message import Message
from redis_kit.queues.errors import Cancelled, Interrupted, NewerMessage, Snooze
from redis_kit.queues.worker.run.attempt import Attempt, Failed, failed_with
from redis_kit.queues.worker.run.middleware import Middleware
from redis_kit.queues.worker.run.outcome import FailedAttempt, cancelled_attempt, failed
from redis_kit.queues.worker.shared.logs import guarded

logger = logging.getLogger("redis_kit.worker")


class UnfitJob(NamedTuple):
    """A job that this worker can't run, its message, and the reason. Another worker may have the code for it."""

    attempt: Attempt
    call: Message | NewerMessage
    error: Exception

    @property
    def why(self) -> str:
        """Return why it goes back."""
        return f"it can't run here: {text_of(self.error)!a}"

    def give_back(self) -> FailedAttempt | None:
        """Return it to its queue without counting an attempt. One round trip; a repeat is safe.

        If it was returned for too long, or was cancelled while this worker had it, the result is the failure to record.
        """
        source, job, recorder = self.attempt.source, self.attempt.job, self.attempt.recorder
        expires = 0 if isinstance(self.call, NewerMessage) else self.call.expires
        answer = source.defer(job, call_shape.shape(self.call), expires)
        if answer == unknown_calls.RETURNED:
            return None
        cancelled = Cancelled("The job was cancelled while it waited.")
        error = cancelled if answer == unknown_calls.CANCELLED else self.error
        return failed(source, job, error, recorder=recorder, final=True)


class SnoozedJob(NamedTuple):
    """A job whose task raised Snooze, with the delay in seconds and the reason."""

    attempt: Attempt
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


class InterruptedJob(NamedTuple):
    """A job whose resumable task ended its loop as the worker stops."""

    attempt: Attempt
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


Postponed = UnfitJob | SnoozedJob | InterruptedJob


class UnknownCalls(Middleware):
    """Ends attempts for which this worker has no task, or one that takes other arguments."""

    is_used = attrgetter("unknown")

    def __call__(self, attempt: Attempt) -> Any:
        """See Middleware."""
        return UnfitJob(attempt, attempt.call, attempt.unknown)  # type: ignore[arg-type]


def ending_of(attempt: Attempt, error: BaseException) -> Failed | Postponed:
    """Return the ending of an attempt in which this was raised."""
    kind = type(error)  # isinstance() asks the error for its class, which may raise
    if issubclass(kind, NewerMessage) and not attempt.runs:
        return UnfitJob(attempt, error, error)  # type: ignore[arg-type]
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
