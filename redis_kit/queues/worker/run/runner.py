"""Runs one job: from its message to the recorded outcome."""

import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any, NamedTuple

from django.conf import settings
from django.db import connections, reset_queries
from django.utils import timezone, translation

from redis_kit.core.errors import CommandFailed, RedisFailure
from redis_kit.core.logs.error_text import cut_frames, described, text_of
from redis_kit.core.signals import send_safely
from redis_kit.core.tracing import spans
from redis_kit.queues import signals
from redis_kit.queues.errors import (
    Cancelled,
    CorruptMessage,
    Interrupted,
    InvalidWorkflow,
    LeaseLost,
    NewerMessage,
    NotSerializable,
    PayloadTooLarge,
    Retry,
    Snooze,
    TaskTimeout,
    UnknownTask,
    WorkerLost,
)
from redis_kit.queues.jobs import done, message
from redis_kit.queues.jobs.ack import ack_of
from redis_kit.queues.jobs.job import Job
from redis_kit.queues.jobs.message import Message
from redis_kit.queues.settings import options_of
from redis_kit.queues.store import cursors
from redis_kit.queues.tasks import current_job, expiry, registry
from redis_kit.queues.tasks.current_job import CurrentJob
from redis_kit.queues.tasks.task import Task, extended
from redis_kit.queues.worker.run.event_loop import EventLoop, synchronous
from redis_kit.queues.worker.run.hand_over import HandOver, RoutedJob, WaitingJobs
from redis_kit.queues.worker.run.job_logs import JobLogs
from redis_kit.queues.worker.run.outcome import FailedAttempt, failed, most_attempts
from redis_kit.queues.worker.run.postponement import InterruptedJob, PostponedJob, SnoozedJob, UnfitJob
from redis_kit.queues.worker.run.recorder import ResultRecorder, recorder_of
from redis_kit.queues.worker.run.sink import Routes
from redis_kit.queues.worker.run.statistics import TaskStatistics
from redis_kit.queues.worker.run.timeouts import JobKey, Timeouts
from redis_kit.queues.worker.run.workflow_step import Ended, WorkflowStep
from redis_kit.queues.worker.shared import failpoints
from redis_kit.queues.worker.shared.done import Done, RecentAcks
from redis_kit.queues.worker.shared.logs import guarded
from redis_kit.queues.worker.shared.reconnect import UNAVAILABLE, until_answered
from redis_kit.queues.worker.shared.status_board import StatusBoard
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue

logger = logging.getLogger("redis_kit.worker")
HERE = f"{Path(__file__).parent}{os.sep}"  # a task's traceback begins with the task
IDLE = 0.1  # seconds after which a thread's connections are checked before a job, too
UNSTORED = (NotSerializable, PayloadTooLarge, InvalidWorkflow)  # raised for a return value, or steps that were added
AFTER = 1.0  # seconds that a task has to end after its timeout was raised inside it, before its process is killed


def tidy() -> None:
    """Close this thread's database connections that are broken or too old, and those that a task left in a transaction.

    One that was interrupted as it ended its transaction leaves it open, and the next job would write into that.
    """
    for connection in connections.all(initialized_only=True):
        if connection.in_atomic_block:
            connection.close()
            del connections[connection.alias]
        else:
            connection.close_if_unusable_or_obsolete()


class Outcome(NamedTuple):
    """The outcome of an attempt: its task, if known, and the error, if it failed."""

    task: Task[..., Any] | None = None
    error: BaseException | None = None
    value: bytes = b""
    final: bool = False  # another attempt can't help
    unfit: Message | NewerMessage | None = None  # a call that this worker can't run
    path: str = ""  # of the task, if it began
    handed: RoutedJob | None = None  # it is to be handed over to another system
    expires: int = 0  # of the call
    step: WorkflowStep | None = None
    run_time: float = 0.0  # seconds
    trace: Mapping[str, str] = {}  # the ids of its span
    isolated: bool = False  # it is to run in a process of its own
    looped: bool = False  # it stored how far its resumable loops are

    def postponed(self, source: WorkerQueue, job: Job, recorder: ResultRecorder | None) -> PostponedJob | None:
        """Return the job if its attempt does not count."""
        error = self.error
        if self.unfit and isinstance(error, Exception):
            return UnfitJob(source, job, self.unfit, error, recorder)
        if self.task and issubclass(type(error), Snooze):
            return SnoozedJob.of(source, job, self.task, error, self.expires, recorder)  # type: ignore[arg-type]
        if self.task and issubclass(type(error), Interrupted):
            return InterruptedJob(source, job, self.task, text_of(error))  # type: ignore[arg-type]
        return None


class JobRunner:
    """Runs jobs; shared by all threads of the worker."""

    def __init__(
        self,
        sources: Sequence[WorkerQueue],
        *,
        board: StatusBoard,
        deadlines: Timeouts,
        coroutines: EventLoop,
        given_up: Event,
        later: Callable[[Callable[[], None]], None],
        recent: RecentAcks,
        routes: Routes,
        put_off: Callable[[int, Sequence[Job], float], None],
        waiting: WaitingJobs,
        stops: Callable[[], bool] = lambda: False,
        statistics: TaskStatistics | None = None,
        logs: JobLogs | None = None,
        isolate: Callable[[int, Job], None] | None = None,
    ) -> None:
        self._sources, self._board, self._given_up, self._later = sources, board, given_up, later
        self._recent, self._routes, self._stops, self._isolate = recent, routes, stops, isolate
        self._statistics, self._logs, self._deadlines, self._coroutines = statistics, logs, deadlines, coroutines
        self._own = threading.local()
        self._backends: dict[str, Any] = {}
        handing: dict[str, Any] = {"waiting": waiting, "put_off": put_off, "backends": self._backends}
        self._hand_over = HandOver(sources, routes, **handing, record=lambda failure: self._record(failure))
        self._running: dict[JobKey, CurrentJob] = {}
        self._tracer = spans.tracer()

    def cancel(self, job: JobKey) -> None:
        """Let the task of a job know that it was cancelled, and interrupt it unless it looks at that by itself."""
        running = self._running.get(job)
        if running:
            running.cancelled = True
        if not (running and not running.interruptible) and not self._deadlines.cancel(job):
            self._coroutines.cancel(job)

    def close(self) -> None:
        """End the connections to other systems that took jobs."""
        self._routes.close()

    def process(self, slot: int, source: int, job: Job) -> list[Done]:
        """Run a job; record a failed attempt, also after an outage. Return it if it is done, with others beside it."""
        if (begun := monotonic()) - getattr(self._own, "closed", 0.0) > IDLE:
            guarded("The database connections of a thread", tidy, None)
        try:
            return self.run(slot, source, job)
        finally:
            guarded("The database connections of a thread", tidy, None)
            translation.deactivate()
            timezone.deactivate()
            self._own.closed = monotonic()
            self._board.end(slot)
            self._board.tally(self._own.ended, self._own.closed - begun)
            if settings.DEBUG:
                reset_queries()

    def run(self, slot: int, number: int, job: Job) -> list[Done]:
        """Do the same without a look at the thread's database connections. An outcome is recorded whatever fails."""
        source, recorder = self._sources[number], None
        outcome: Outcome | None = None
        self._own.ended = 1
        try:
            recorder = recorder_of(source, job, self._backends)
            outcome = self._attempt(slot, number, job, recorder)
            if postponed := outcome.postponed(source, job, recorder):
                self._own.ended = 0
                self._give_back(postponed)
                return []
            if outcome.handed:  # it is not noted as begun: a kill is not its fault
                self._own.ended = 0
                done = self._hand_over.run(slot, number, outcome.handed)
                self._own.ended = len(done)
                return done
            if outcome.isolated and self._isolate:
                self._own.ended = 0
                self._isolate(number, job)
                return []
            if self._statistics and outcome.path:
                self._statistics.add(number, outcome.path, outcome.run_time, job, failed=outcome.error is not None)
            if outcome.error is None:
                if outcome.step:
                    outcome.step.finish()
                return [self._succeeded(number, job, outcome, recorder)]
            failure = failed(source, job, outcome.error, task=outcome.task, recorder=recorder, final=outcome.final)
            failure = failure._replace(trace=outcome.trace)
        except BaseException as error:  # of the worker itself, or of a plug-in
            failure = failed(source, job, error, recorder=recorder)
        self._record(failure)
        del failure, outcome  # the error's traceback refers to this frame: in a circle, what the task had would live on
        return []

    def _attempt(self, slot: int, number: int, job: Job, recorder: ResultRecorder | None) -> Outcome:
        source, step = self._sources[number], None
        try:
            call = message.loads(job.body)
            if call.step:
                step = WorkflowStep(source, call.step, self._given_up)
            late = expiry.expired(job, call)
            if route := self._hand_over.route_of(number, job, call, recorder):
                return Outcome(handed=RoutedJob(job, call, recorder, route))
            task = extended(registry.find_for(call))
        except NewerMessage as error:
            return Outcome(error=error, unfit=error)
        except CorruptMessage as error:
            return Outcome(error=error, final=True)
        except UnknownTask as error:
            return Outcome(error=late, final=True) if late else Outcome(error=error, unfit=call)
        if late:
            return Outcome(task, late, final=True)
        if job.crashes:  # of processes that ran it
            if job.attempt > most_attempts(task):
                return Outcome(task, WorkerLost("its process died in the last of its attempts"), final=True)
            if self._isolate:
                return Outcome(isolated=True)
        if step:
            answer = step.begin(call)
            if isinstance(answer, Ended):
                return Outcome(task, answer.error, answer.value if recorder else b"", final=True, step=step)
            call = answer
        hard = None if task.timeout is None else monotonic() + task.timeout + AFTER
        self._board.begin(slot, number, job.token, job.id, hard)
        failpoints.reach("begun")
        send_safely(signals.job_started, JobRunner, queue=source.queue_name, job=job, task=task)
        if recorder:
            recorder.begin(call)
        keeps, interruptible = recorder.keeps if recorder else None, task.on_cancel == "raise"
        log = self._logs.of(number, job.id) if self._logs else None
        running = CurrentJob(source, job, keeps, interruptible=interruptible, stops=self._stops, log=log)
        self._running[number, job.id] = running
        path, has_ended = task.module_path, False
        here = current_job.begin(running, path)
        if step:
            step.enter()
        started = monotonic()
        try:
            context = recorder.context() if recorder and task.takes_context else None
            run = self._traced if self._tracer else self._call
            returned = run((number, job.id), task, call, context)
            has_ended = True
            failpoints.reach("called")
            value = recorder.value(returned) if recorder else b""
            if step:
                step.returned(returned, value)
            looped = running.loops > 0
            return Outcome(task, value=value, path=path, step=step, run_time=monotonic() - started, looped=looped)
        except BaseException as error:
            cut_frames(error, HERE)
            final, seconds = has_ended and issubclass(type(error), UNSTORED), monotonic() - started
            return Outcome(
                task, error, final=final, path=path, expires=call.expires, run_time=seconds, trace=running.trace
            )
        finally:
            if step:
                step.leave()
            self._running.pop((number, job.id), None)
            current_job.end(here)

    def _traced(self, key: JobKey, task: Task[..., Any], call: Message, context: Any) -> Any:
        """Do what _call() does, in a span of its own."""
        queue, job = self._sources[key[0]].queue_name, self._running[key].job
        with self._tracer.running(call.task, queue, job.id, job.attempt, call.trace, postponed=(Retry, Snooze)):
            self._running[key].trace = spans.ids()
            return self._call(key, task, call, context)

    def _call(self, job: JobKey, task: Task[..., Any], call: message.Message, context: Any) -> Any:
        args = [context, *call.args] if task.takes_context else call.args
        work = partial(task.func, *args, **call.kwargs)
        try:
            if task.is_async:
                return self._coroutines.run(job, work, timeout=task.timeout, sync=self._synchronous())
            return self._deadlines.run_within(job, task.timeout, work)
        except TaskTimeout as error:
            error.args = error.args or (f"{task.module_path} ran for more than {task.timeout} s",)
            raise
        except Cancelled as error:
            error.args = error.args or ("The job was cancelled while it ran.",)
            raise

    def _synchronous(self) -> Any:
        if not hasattr(self._own, "synchronous"):
            self._own.synchronous = synchronous()
        return self._own.synchronous

    def _succeeded(self, number: int, job: Job, outcome: Outcome, recorder: ResultRecorder | None) -> Done:
        def announce() -> None:
            if outcome.looped:
                forget = cursors.forget(self._sources[number], job)
                guarded("The place of a loop", partial(self._sources[number].run_flow, forget), None)
            send_safely(
                signals.job_succeeded, JobRunner, queue=self._sources[number].queue_name, job=job, task=outcome.task
            )
            if recorder:
                recorder.succeeded()

        keep = recorder.keeps(failed=False) if recorder else 0
        heard = recorder or outcome.looped or signals.job_succeeded.receivers
        noted = options_of(self._sources[number].name).DONE_LIMIT > 0
        about = done.line(job, outcome.run_time if outcome.path else None) if noted else b""
        end = ack_of(job, outcome.value, keep, source=number, about=about)
        return Done(job, end, announce if heard else None, outcome.step.repeatable(end) if outcome.step else None)

    def _give_back(self, postponed: PostponedJob, *, again: bool = False) -> None:
        try:
            failure = until_answered(postponed.give_back, self._given_up)
        except (LeaseLost, RedisFailure) as error:
            if not again:
                details = postponed.job.id, postponed.source.name, described(error), postponed.why
                logger.warning("Job %a of queue %a could not be returned: %s; %s", *details)
            if not isinstance(error, (LeaseLost, *UNAVAILABLE)):
                self._later(partial(self._give_back, postponed, again=True))
            return
        if failure:
            self._record(failure)

    def _record(self, failure: FailedAttempt, *, again: bool = False) -> None:
        failpoints.reach("before_nack")
        if not again:
            self._recent.add([failure.repeatable()])
        try:
            state = until_answered(failure.record, self._given_up)
        except BaseException as error:
            if not again:
                guarded("The log of a failed attempt", partial(failure.log_unrecorded, error), None)
            if not isinstance(error, (LeaseLost, *UNAVAILABLE)):
                whole = isinstance(error, RedisFailure) and not isinstance(error, CommandFailed)
                later = failure if whole else failure.plain()
                self._later(partial(self._record, later, again=True))
            return
        failpoints.reach("nacked")
        failure.announce(state)
