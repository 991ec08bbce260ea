"""Endings beside success: the attempt failed, or its job leaves this worker, perhaps for its queue.

A failure is recorded by the thread that ran the job or, for a process that had to be killed, by the supervisor.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from redis_kit.core import activity, conf
from redis_kit.core.errors import InvalidValue, RedisFailure
from redis_kit.core.flow import single
from redis_kit.core.logs.error_text import ExcInfo, described, exc_info, name_of, text_of
from redis_kit.core.signals import send_safely
from redis_kit.core.steps import Call
from redis_kit.core.terminal import rounded_duration
from redis_kit.queues import errors, signals, validation
from redis_kit.queues.engine import claim, message
from redis_kit.queues.engine.done import ack_of
from redis_kit.queues.engine.feature import Recorder, death_hooks, recorders
from redis_kit.queues.engine.job import Job, State, read
from redis_kit.queues.errors import Cancelled, LeaseLost
from redis_kit.queues.settings import QueueSettings
from redis_kit.queues.tasks import registry, retry
from redis_kit.queues.tasks.current_job import log_fields
from redis_kit.queues.tasks.task import Task, extended
from redis_kit.queues.worker.run.attempt import Attempt, Failed, WorkerContext
from redis_kit.queues.worker.shared.failures import UNAVAILABLE, guarded, until_answered
from redis_kit.queues.worker.shared.status_board import Running
from redis_kit.queues.worker.shared.worker_queue import Claims, Done, RecordedEnd, WorkerQueue

logger = logging.getLogger("redis_kit.worker")
# Raised for a return value, for steps that were added, and for a middleware that returns something else.
UNSTORED = (errors.NotSerializable, errors.PayloadTooLarge, errors.InvalidWorkflow, errors.InvalidMiddleware)
LATER: float | None = 60.0  # seconds, if not even the settings can be read
PLAIN = (errors.Retry, errors.GiveUp, Cancelled, errors.Expired)  # their texts say enough: no traceback


@dataclass
class FailedAttempt:
    """An attempt that failed, and what is to be recorded of it. To make one never raises.

    ``final``: another attempt can't help. ``killed``: its process was killed. Without a task the worker itself failed.
    ``trace`` are the ids of its span.
    """

    source: WorkerQueue
    job: Job
    error: BaseException
    task: Task[..., Any] | None = None
    recorder: Recorder | None = None
    final: bool = False
    killed: bool = False
    trace: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        source, job, error, task, recorder = self.source, self.job, self.error, self.task, self.recorder
        self.reason, self.stored = reason(error), (b"", 0)
        if recorder:
            self.stored = guarded("The error of a result", partial(recorder.error, error), self.stored)
        self.of = guarded("The number of attempts", partial(most_attempts, task), QueueSettings.MAX_ATTEMPTS)
        self.max_attempts = 1 if self.final else self.of  # after these the job is dead
        self.delay = 0.0
        if job.attempt < self.max_attempts:
            wait = guarded("The wait for the next attempt", partial(_wait, job, error, task, recorder), LATER)
            self.max_attempts, self.delay = (1, 0.0) if wait is None else (self.max_attempts, wait)
        no_hooks: Sequence[Callable[[str], object]] = ()  # they are called with the reason if the job is dead now
        self.hooks = guarded("The hooks of a failure", partial(death_hooks, source, job.body), no_hooks)

    def record(self) -> "tuple[FailedAttempt, State]":
        """Record it; return what was recorded, and the job's new state. A repeat is safe.

        A job that was cancelled while it ran is recorded as such. One round trip, two for a cancelled job, and those of
        its hooks.
        """
        steps = claim.fail(self.source, self.job, self.delay, self.reason, self.max_attempts, self.stored)
        state = self.source.run_flow(steps)
        if state is None:
            stopped = Cancelled(errors.CANCELLED_WHILE_RUNNING)
            return FailedAttempt(self.source, self.job, stopped, self.task, self.recorder, final=True).record()
        if state == "dead" and self.cancelled:
            with suppress(RedisFailure):
                self.source.delete(self.job.id)  # it was cancelled: nobody will retry it
        for hook in self.hooks if state == "dead" else ():
            hook(self.reason)
        return self, state

    def plain(self) -> "FailedAttempt":
        """Return a shorter form, for when the whole could not be recorded."""
        plain = copy(self)
        plain.reason, plain.stored = name_of(self.error), (b"", 0)
        return plain

    def repeatable(self) -> RecordedEnd:
        """Return what records it again later. Neither the job's body nor the error is kept for that."""
        end, again = ack_of(self.job), copy(self)
        again.job, again.task, again.recorder = Job(self.job.id, b"", self.job.token), None, None
        again.error = Cancelled() if self.cancelled else Exception()
        return RecordedEnd(end.token, end.id, self.stored[0], again.record)

    def announce(self, state: State) -> None:
        """Log the job's new state and send the signals. It is recorded already, so a failure here changes nothing."""
        with activity.doing(fields=lambda: {**self.trace, **log_fields(self.source, self.job)}):
            guarded("The log of a failed attempt", partial(self._log, state), None)
        queue = self.source.queue_name
        if state != "dead":
            details = {"queue": queue, "job": self.job, "task": self.task, "error": self.error}
            send_safely(signals.job_retried, FailedAttempt, **details)
            return
        send_safely(signals.job_dead, FailedAttempt, queue=queue, id=self.job.id, reason=self.reason)
        if self.recorder:
            guarded("The end of a result", partial(self.recorder.failed, self.error), None)

    @property
    def cancelled(self) -> bool:
        """Tell whether the job was cancelled."""
        return issubclass(type(self.error), Cancelled)

    def unforeseen(self) -> ExcInfo | None:
        """Return the error for the log if its traceback is of use; None if it was raised on purpose."""
        foreseen = self.killed or self.final or issubclass(type(self.error), PLAIN)
        return None if foreseen else exc_info(self.error)

    def log_unrecorded(self, error: BaseException) -> None:
        """Log that the attempt could not be recorded because of this error."""
        details = _named(self), described(error), self.reason
        logger.warning("%s: its outcome could not be recorded: %s; it failed: %a", *details, exc_info=self.unforeseen())

    def _log(self, state: State) -> None:
        """Log which attempt failed and what follows: one line, with a traceback if that is of use.

        It is the only line about the end of a job: the recorder keeps the framework from logging the error again.
        """
        # The claim that finds that the process of the last attempt died is counted, and runs nothing.
        number = min(self.job.attempt, self.of)
        name, attempt, error = _named(self), f"attempt {number} of {self.of}", self.unforeseen()
        if self.cancelled and state == "dead":
            logger.info("%s was cancelled%s.", name, "; it ended with its process" if self.killed else "")
        elif self.killed:
            next_step = "it is dead" if state == "dead" else f"the next one in {rounded_duration(self.delay)}"
            logger.error("%s: its process was killed, %s, %s: %a", name, attempt, next_step, self.reason)
        elif state == "dead":
            ran = self.task and not issubclass(type(self.error), errors.Expired)
            logger.error("%s is dead%s: %a", name, f" after {attempt}" if ran else "", self.reason, exc_info=error)
        elif issubclass(type(self.error), errors.Retry):
            ending = f": {text!a}" if (text := text_of(self.error)) else "."
            logger.info("%s will be retried in %s, after %s%s", name, rounded_duration(self.delay), attempt, ending)
        else:
            next_in, ending = rounded_duration(self.delay), "." if error else f": {self.reason!a}"
            logger.warning("%s failed, %s, the next one in %s%s", name, attempt, next_in, ending, exc_info=error)


def _wait(job: Job, error: BaseException, task: Task[..., Any] | None, recorder: Recorder | None) -> float | None:
    if task is None:
        return retry.default_delay(job.attempt)
    if issubclass(type(error), Cancelled):
        return None
    return retry.delay(task.module_path, task.backoff, job, error, recorder and recorder.result())


def most_attempts(task: Task[..., Any] | None) -> int:
    """Return how many attempts a task has."""
    given = task.max_attempts if task else None
    return conf.section(QueueSettings).MAX_ATTEMPTS if given is None else given


def reason(error: BaseException) -> str:
    """Return the stored reason of a failure."""
    kind = type(error)
    if issubclass(kind, errors.CorruptMessage):
        return f"corrupt: {text_of(error)}"
    if issubclass(kind, errors.Expired):
        return f"expired: {text_of(error)}"
    if issubclass(kind, errors.UnknownTask):
        return text_of(error)
    return described(error)


def record_unstoppable(source: WorkerQueue, running: Running, *, cancelled: bool) -> None:
    """Record that a job ran into its timeout, or was cancelled, and ended with its process only.

    Two round trips, three if it was cancelled; a repeat is safe.
    """
    record = source.run_flow(single(Call("HGET", source.key("jobs"), running.id.encode("utf-8", "surrogateescape"))))
    if record is None:
        return
    info = read(record)
    history = info.history if running.id.isascii() else b""
    job = Job(running.id, info.body, running.token, info.attempts, info.crashes, info.priority, info.due, history)
    call = message.loads(job.body)
    task, recorder_of = extended(registry.find(call.task)), recorders()
    job_recorder = recorder_of(source, job) if recorder_of else None
    if job_recorder:
        job_recorder.resume(call)
    error: BaseException = errors.TaskTimeout(f"{task.module_path} ran for more than {task.timeout} s")
    if cancelled:
        error = Cancelled("The job was cancelled while it ran, and did not stop.")
    failure = FailedAttempt(source, job, error, task, job_recorder, killed=True)
    with suppress(LeaseLost):
        recorded, state = failure.record()
        recorded.announce(state)


class Runner(Protocol):
    """What runs the jobs of a process, as departures see it."""

    worker: WorkerContext
    claims: Claims

    @property
    def recorder_of(self) -> Callable[[WorkerQueue, Job], Recorder | None] | None:
        """Return the function that returns the recorder of a job."""

    def record(self, failure: FailedAttempt) -> None:
        """Record a failed attempt, also after an outage."""


class Departure:
    """The ending of an attempt that neither succeeded nor failed: the job leaves this worker, perhaps with others."""

    def carry_out(self, attempt: Attempt, runner: Runner) -> list[Done]:
        """Let it go, and return the jobs that are done here: none if nothing is left to do."""
        return []


@dataclass(frozen=True)
class Postponed(Departure):
    """The ending of an attempt that does not count, and why: the job goes back to its queue.

    ``give_back`` returns it, and may be repeated. Its result is a failure to record in place of that, if there is one.
    """

    why: str
    give_back: Callable[[], FailedAttempt | None]

    def carry_out(self, attempt: Attempt, runner: Runner, *, again: bool = False) -> list[Done]:
        """Return the job to its queue, also after an outage; ``again`` if that failed before."""
        try:
            failure = until_answered(self.give_back, runner.worker.given_up)
        except (LeaseLost, RedisFailure) as error:
            if not again:
                details = attempt.job.id, attempt.source.name, described(error), self.why
                logger.warning("Job %a of queue %a could not be returned: %s; %s", *details)
            if not isinstance(error, (LeaseLost, *UNAVAILABLE)):
                runner.claims.retry_later(partial(self.carry_out, attempt, runner, again=True))
            return []
        if failure:
            runner.record(failure)
        return []


def _snooze(attempt: Attempt, delay: float, said: str) -> FailedAttempt | None:
    """Return a job to its queue for its task, which raised Snooze. One round trip.

    If it was cancelled while it ran, the result is the failure to record.
    """
    source, job, task = attempt.source, attempt.job, attempt.task
    keep = attempt.recorder.keeps(failed=True) if attempt.recorder else 0
    if source.run_flow(claim.snooze(source, job, delay, expires=attempt.call.expires, why=said, ttl_ms=keep)):
        ending = f": {said!a}" if said else "."
        log = partial(logger.info, "%s snoozes for %s%s", _named(attempt), rounded_duration(delay), ending)
        guarded("The log of a snoozed job", log, None)
        send_safely(signals.job_snoozed, Postponed, queue=source.queue_name, job=job, task=task, delay=delay)
        return None
    stopped = Cancelled(errors.CANCELLED_WHILE_RUNNING)
    return FailedAttempt(source, job, stopped, task, attempt.recorder, final=True)


def _interrupt(attempt: Attempt, said: str) -> None:
    """Make a job ready in its old place: its resumable task ended its loop as the worker stops. One round trip."""
    attempt.source.release([attempt.job])
    log = partial(logger.info, "%s is ready again: %s.", _named(attempt), said)
    guarded("The log of an interrupted job", log, None)


def ending_of(attempt: Attempt, error: BaseException) -> Failed | Postponed:
    """Return the ending of an attempt in which this was raised."""
    kind = type(error)  # isinstance() asks the error for its class, which may raise
    if not attempt.runs:
        final = issubclass(kind, errors.CorruptMessage) and not issubclass(kind, errors.NewerMessage)
        return Failed(error, final=final)
    if issubclass(kind, errors.Interrupted):
        return Postponed("its worker stops", partial(_interrupt, attempt, text_of(error)))
    if issubclass(kind, errors.Snooze):
        with suppress(InvalidValue, AttributeError):  # a subclass may have any delay
            delay = validation.milliseconds(error.delay, positive=True) / 1000  # type: ignore[attr-defined]
            return Postponed("its task raised Snooze", partial(_snooze, attempt, delay, text_of(error)))
    return Failed(error, attempt.task, final=attempt.has_returned and issubclass(kind, UNSTORED))


def _named(attempt: FailedAttempt | Attempt) -> str:
    of = f" ({attempt.task.module_path})" if attempt.task else ""
    return f"Job {attempt.job.id!a} of queue {attempt.source.name!a}{of}"
