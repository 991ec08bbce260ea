"""Runs one job: from its message to the recorded outcome."""

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from threading import Event
from time import monotonic
from typing import Any, NamedTuple

from django.conf import settings
from django.db import close_old_connections, reset_queries

from redis_kit.core import conf
from redis_kit.core.doing import doing
from redis_kit.core.errors import RedisFailure, RedisUnavailable
from redis_kit.queues import expiry, message, registry, retry, running, signals
from redis_kit.queues.component import QueueSettings
from redis_kit.queues.ended import ended
from redis_kit.queues.job import Job, LeaseLost, State
from redis_kit.queues.serializers import CorruptMessage, NotSerializable, PayloadTooLarge
from redis_kit.queues.tasks import Cancelled, Task, TaskTimeout, extended
from redis_kit.queues.worker import failpoints
from redis_kit.queues.worker.board import Board
from redis_kit.queues.worker.coroutines import Coroutines, synchronous
from redis_kit.queues.worker.deadlines import Deadlines
from redis_kit.queues.worker.exchanger import Done
from redis_kit.queues.worker.keeper import Keeper, keeper
from redis_kit.queues.worker.patience import until_answered
from redis_kit.queues.worker.source import Source

logger = logging.getLogger("redis_kit.worker")
IDLE = 0.1  # seconds after which a thread's connections are looked at before a job too, and not only after it
PLAIN = (retry.Retry, retry.GiveUp, Cancelled, expiry.Expired)  # say all by themselves: no traceback
UNSTORED = (NotSerializable, PayloadTooLarge)  # of what a task returned
AFTER = 1.0  # seconds that a task has to end after its timeout was raised inside it, before its process is killed


class Outcome(NamedTuple):
    """How an attempt ended: of which task, if that is known, and why it failed, if it did."""

    task: Task[..., Any] | None = None
    error: BaseException | None = None
    max_attempts: int = 1
    value: bytes = b""
    final: bool = False  # to repeat it can't help


class Failure(NamedTuple):
    """A failed attempt, and what is to be recorded of it: why, what its result tells, when the next one may begin."""

    source: Source
    job: Job
    task: Task[..., Any] | None
    error: BaseException
    kept: Keeper | None
    reason: str
    told: tuple[bytes, int]
    delay: float
    max_attempts: int
    of: int  # attempts that the task has, also where it gives up before the last
    final: bool  # its error says all by itself, as the kit raised it after the task had ended

    def record(self) -> State:
        """Record it, and return what the job is now. One round trip; a repeat is safe."""
        return self.source.fail(
            self.job, delay=self.delay, error=self.reason, max_attempts=self.max_attempts, kept=self.told
        )

    def named(self) -> str:
        """Return how the log names the job."""
        of = f" ({self.task.module_path})" if self.task else ""
        return f"Job {self.job.id!a} of queue {self.source.name!a}{of}"

    def unforeseen(self) -> BaseException | None:
        """Return the error where its traceback is of use; None where the task asked for it, or none ran."""
        return self.error if self.task and not self.final and not isinstance(self.error, PLAIN) else None

    def log(self, state: State) -> None:
        """Tell which attempt failed and what comes next: in one line, after a traceback where that is of use."""
        name, attempt, error = self.named(), f"attempt {self.job.attempt} of {self.of}", self.unforeseen()
        if state != "dead":
            why = "." if error else f": {self.reason!a}"
            logger.warning("%s failed, %s, the next one in %.1f s%s", name, attempt, self.delay, why, exc_info=error)
            return
        if isinstance(self.error, Cancelled):
            logger.info("%s was cancelled.", name)
            return
        if error:
            logger.warning("%s failed, %s, the last one.", name, attempt, exc_info=error)
        ran = self.task and not isinstance(self.error, expiry.Expired)
        logger.error("%s is dead%s: %a", name, f" after {attempt}" if ran else "", self.reason)


class Processor:
    """What every thread of the worker does with a job."""

    def __init__(
        self,
        sources: Sequence[Source],
        *,
        board: Board,
        deadlines: Deadlines,
        coroutines: Coroutines,
        given_up: Event,
        later: Callable[[Callable[[], None]], None],
    ) -> None:
        self._sources, self._board, self._given_up, self._later = sources, board, given_up, later
        self._deadlines, self._coroutines = deadlines, coroutines
        self._own = threading.local()
        self._backends: dict[str, Any] = {}

    def process(self, slot: int, source: int, job: Job) -> Done | None:
        """Run a job and return it where it is done; record a failed attempt, after an outage when that is over."""
        if monotonic() - getattr(self._own, "closed", 0.0) > IDLE:
            close_old_connections()
        try:
            return self.run(slot, source, job)
        finally:
            close_old_connections()
            self._own.closed = monotonic()
            self._board.end(slot)
            self._board.tally(1)
            if settings.DEBUG:
                reset_queries()

    def run(self, slot: int, number: int, job: Job) -> Done | None:
        """Do the same, and leave the thread's database connections alone."""
        source = self._sources[number]
        kept = None
        try:
            kept = keeper(source, job, self._backends)
            outcome = self._attempt(slot, number, job, kept)
        except Exception as error:
            logger.exception("Job %a of queue %a: the worker itself failed.", job.id, source.name)
            outcome = Outcome(error=error)
        if outcome.error is None:
            return self._succeeded(number, job, outcome, kept)
        self._record(self._failed(source, job, outcome, outcome.error, kept))
        return None

    def _attempt(self, slot: int, number: int, job: Job, kept: Keeper | None) -> Outcome:
        source = self._sources[number]
        try:
            call = message.loads(job.body)
            task = extended(registry.find(call.task))
        except (CorruptMessage, registry.UnknownTask) as error:
            return Outcome(error=error)
        if late := expiry.expired(job, call):
            return Outcome(task, late)
        hard = None if task.timeout is None else monotonic() + task.timeout + AFTER
        self._board.begin(slot, number, job.token, job.id, hard)
        failpoints.reach("begun")
        signals.job_started.send_robust(Processor, queue=source.name, job=job, task=task)
        if kept:
            kept.begin(call)
        most = conf.section(QueueSettings).MAX_ATTEMPTS if task.max_attempts is None else task.max_attempts
        before = doing.set(f"job {task.module_path} {job.id}")
        here, has_ended = running.begin(source, job, kept.keeps if kept else None), False
        try:
            returned = self._call(job, task, call, kept.context() if kept and task.takes_context else None)
            has_ended = True
            failpoints.reach("called")
            return Outcome(task, value=kept.value(returned) if kept else b"")
        except BaseException as error:
            return Outcome(task, error, most, final=has_ended and isinstance(error, UNSTORED))
        finally:
            running.end(here)
            doing.reset(before)

    def _call(self, job: Job, task: Task[..., Any], call: message.Message, context: Any) -> Any:
        args = [context, *call.args] if task.takes_context else call.args
        try:
            if task.is_async:
                work = partial(task.func, *args, **call.kwargs)
                return self._coroutines.run(job.id, work, timeout=task.timeout, sync=self._synchronous())
            with self._deadlines.limit(job.id, task.timeout):
                return task.func(*args, **call.kwargs)
        except TaskTimeout as error:
            raise TaskTimeout(f"{task.module_path} ran for more than {task.timeout} s") from error
        except Cancelled as error:
            raise Cancelled("The job was cancelled while it ran.") from error

    def _synchronous(self) -> Any:
        if not hasattr(self._own, "synchronous"):
            self._own.synchronous = synchronous()
        return self._own.synchronous

    def _succeeded(self, number: int, job: Job, outcome: Outcome, kept: Keeper | None) -> Done:
        def told() -> None:
            signals.job_succeeded.send_robust(Processor, queue=self._sources[number].name, job=job, task=outcome.task)
            if kept:
                kept.succeeded()

        keep = kept.keeps(failed=False) if kept else 0
        heard = kept or signals.job_succeeded.receivers
        return Done(job, ended(job, outcome.value, keep, source=number), told if heard else None)

    def _failed(self, source: Source, job: Job, outcome: Outcome, error: BaseException, kept: Keeper | None) -> Failure:
        told = kept.error(error) if kept else (b"", 0)
        delay, most = self._next(job, outcome, error, kept)
        of, reason = outcome.max_attempts, _described(error)
        return Failure(source, job, outcome.task, error, kept, reason, told, delay, most, of, outcome.final)

    def _record(self, failure: Failure, *, again: bool = False) -> None:
        source, job = failure.source, failure.job
        failpoints.reach("before_nack")
        try:
            state = until_answered(failure.record, self._given_up)
        except (LeaseLost, RedisFailure) as error:
            if not again:
                what, raised = (failure.named(), error, failure.reason), failure.unforeseen()
                logger.warning("%s: its outcome could not be recorded: %s; it failed: %a", *what, exc_info=raised)
            if not isinstance(error, (LeaseLost, RedisUnavailable)):
                self._later(partial(self._record, failure, again=True))
            return
        failpoints.reach("nacked")
        failure.log(state)
        if state == "dead":
            signals.job_dead.send_robust(Processor, queue=source.name, id=job.id, reason=failure.reason)
            if failure.kept:
                failure.kept.failed(failure.error)
            if isinstance(failure.error, Cancelled):
                with suppress(RedisFailure):
                    source.remove(job.id)  # somebody wanted it gone: it is nothing to put back
        else:
            said = {"queue": source.name, "job": job, "task": failure.task}
            signals.job_retried.send_robust(Processor, **said, error=failure.error)

    def _next(self, job: Job, outcome: Outcome, error: BaseException, kept: Keeper | None) -> tuple[float, int]:
        """Return the seconds to the next attempt, and how many attempts the job has."""
        if outcome.final or job.attempt >= outcome.max_attempts:
            return 0.0, 1 if outcome.final else outcome.max_attempts
        delay = None if isinstance(error, Cancelled) else retry.delay(outcome.task, job, error, kept and kept.result())
        return (0.0, 1) if delay is None else (delay, outcome.max_attempts)


def _described(error: BaseException) -> str:
    if isinstance(error, CorruptMessage):
        return f"corrupt: {error}"
    if isinstance(error, expiry.Expired):
        return f"expired: {error}"
    if isinstance(error, registry.UnknownTask):
        return str(error)
    return f"{type(error).__qualname__}: {error}"
