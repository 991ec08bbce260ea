"""Attempts that do not count: the job goes back to its queue."""

import logging
from typing import NamedTuple

from redis_kit.core.errors import InvalidValue
from redis_kit.core.logs.error_text import text_of
from redis_kit.core.signals import send_safely
from redis_kit.core.terminal import rounded_duration
from redis_kit.queues import signals, validation
from redis_kit.queues.errors import Cancelled, NewerMessage, Snooze
from redis_kit.queues.jobs import call_shape
from redis_kit.queues.jobs.job import Job
from redis_kit.queues.jobs.message import Message
from redis_kit.queues.store import unknown_calls
from redis_kit.queues.tasks.task import Task
from redis_kit.queues.worker.run.outcome import FailedAttempt, failed
from redis_kit.queues.worker.run.recorder import ResultRecorder
from redis_kit.queues.worker.shared.logs import guarded
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue

logger = logging.getLogger("redis_kit.worker")


class UnfitJob(NamedTuple):
    """A job that this worker can't run, its message, and the reason. Another worker may have the code for it."""

    source: WorkerQueue
    job: Job
    call: Message | NewerMessage
    error: Exception
    recorder: ResultRecorder | None

    @property
    def why(self) -> str:
        """Return why it goes back."""
        return f"it can't run here: {text_of(self.error)!a}"

    def give_back(self) -> FailedAttempt | None:
        """Return it to its queue without counting an attempt. One round trip; a repeat is safe.

        If it was returned for too long, or was cancelled while this worker had it, the result is the failure to record.
        """
        expires = 0 if isinstance(self.call, NewerMessage) else self.call.expires
        answer = self.source.defer(self.job, call_shape.shape(self.call), expires)
        if answer == unknown_calls.RETURNED:
            return None
        cancelled = Cancelled("The job was cancelled while it waited.")
        error = cancelled if answer == unknown_calls.CANCELLED else self.error
        return failed(self.source, self.job, error, recorder=self.recorder, final=True)


class SnoozedJob(NamedTuple):
    """A job whose task raised Snooze. ``expires`` is that of its call, in ms."""

    source: WorkerQueue
    job: Job
    task: Task[..., object]
    delay: float
    said: str
    expires: int
    recorder: ResultRecorder | None

    @classmethod
    def of(
        cls,
        source: WorkerQueue,
        job: Job,
        task: Task[..., object],
        error: Snooze,
        expires: int,
        recorder: ResultRecorder | None,
    ) -> "SnoozedJob | None":
        """Return the job of a task that raised this; None if its delay is wrong, as a subclass may have any."""
        try:
            delay = validation.milliseconds(error.delay, positive=True) / 1000
        except (InvalidValue, AttributeError):
            return None
        return cls(source, job, task, delay, text_of(error), expires, recorder)

    @property
    def why(self) -> str:
        """Return why it goes back."""
        return "its task raised Snooze"

    def give_back(self) -> FailedAttempt | None:
        """Return it to its queue without counting an attempt. One round trip; a repeat is safe.

        If it was cancelled while it ran, the result is the failure to record.
        """
        keep = self.recorder.keeps(failed=True) if self.recorder else 0
        if self.source.snooze(self.job, self.delay, expires=self.expires, why=self.said, ttl_ms=keep):
            guarded("The log of a snoozed job", self._log, None)
            details = {"queue": self.source.queue_name, "job": self.job, "task": self.task, "delay": self.delay}
            send_safely(signals.job_snoozed, SnoozedJob, **details)
            return None
        error = Cancelled("The job was cancelled while it ran.")
        return failed(self.source, self.job, error, task=self.task, recorder=self.recorder, final=True)

    def _log(self) -> None:
        name = f"Job {self.job.id!a} of queue {self.source.name!a} ({self.task.module_path})"
        ending = f": {self.said!a}" if self.said else "."
        logger.info("%s snoozes for %s%s", name, rounded_duration(self.delay), ending)


class InterruptedJob(NamedTuple):
    """A job whose resumable task ended its loop as the worker stops."""

    source: WorkerQueue
    job: Job
    task: Task[..., object]
    said: str

    @property
    def why(self) -> str:
        """Return why it goes back."""
        return "its worker stops"

    def give_back(self) -> None:
        """Make it ready in its old place, without counting an attempt. One round trip; a repeat is safe."""
        self.source.release([self.job])
        name = f"Job {self.job.id!a} of queue {self.source.name!a} ({self.task.module_path})"
        guarded("The log of an interrupted job", lambda: logger.info("%s is ready again: %s.", name, self.said), None)


PostponedJob = UnfitJob | SnoozedJob | InterruptedJob
