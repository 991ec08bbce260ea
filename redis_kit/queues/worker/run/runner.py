"""Runs one job, from its message to the recorded ending: the runner, the links of its chain, and the call inside."""

import logging
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextvars import copy_context
from functools import partial
from inspect import iscoroutinefunction
from itertools import compress, repeat
from operator import attrgetter, call
from pathlib import Path
from threading import local
from time import monotonic
from typing import Any, cast

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.conf import settings
from django.db import connections, reset_queries
from django.db.backends.signals import connection_created

from redis_kit.core.errors import CommandFailed, RedisFailure
from redis_kit.core.logs.error_text import cut_frames
from redis_kit.core.signals import send_safely
from redis_kit.queues import signals
from redis_kit.queues.engine import feature
from redis_kit.queues.engine.job import Job
from redis_kit.queues.errors import (
    CANCELLED_WHILE_RUNNING,
    Cancelled,
    InvalidMiddleware,
    LeaseLost,
    TaskTimeout,
    WorkerLost,
)
from redis_kit.queues.tasks import current_job, middleware, registry, retry
from redis_kit.queues.worker.run.attempt import (
    SUCCEEDED,
    Attempt,
    Failed,
    Handler,
    Middleware,
    Succeeded,
    WorkerContext,
)
from redis_kit.queues.worker.run.endings import Departure, FailedAttempt, ending_of, most_attempts
from redis_kit.queues.worker.run.timeouts import EventLoop, JobKey, Timeouts
from redis_kit.queues.worker.shared import failpoints
from redis_kit.queues.worker.shared.failures import UNAVAILABLE, guarded, until_answered
from redis_kit.queues.worker.shared.worker_queue import Claims, Done, done_of

logger = logging.getLogger("redis_kit.worker")
AsyncHandler = Callable[[Attempt], Awaitable[Any]]
FORKED = 70  # exit code of a process that a task forked, and that came back from the task
_forks = 0  # between this process and the first one that imported this module


def _note_fork() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_note_fork)


class Call:
    """Calls the function of a task. One per process."""

    def __init__(self, worker: WorkerContext) -> None:
        self._deadlines: Timeouts = worker.deadlines
        self._coroutines: EventLoop = worker.coroutines
        self._own = local()
        # By whether the function is a coroutine function. Made now: a wrong middleware must not cost a job an attempt.
        self._factories = middleware.factories()
        self._chains = {is_async: self._chain(is_async=is_async) for is_async in (False, True)}

    def __call__(self, attempt: Attempt) -> Any:
        """Return what the task returns."""
        forks = _forks
        try:
            try:
                returned = self._chains[registry.is_coroutine(attempt.task.func)](attempt)
                if self._factories:
                    _check(attempt, returned)
            finally:
                if self._factories:
                    attempt.error = attempt.returned = None  # the error refers to frames that refer to the attempt
                if _forks != forks:
                    _end_child(attempt.task.module_path)
        except TaskTimeout as error:
            task = attempt.task
            error.args = error.args or (f"{task.module_path} ran for more than {task.timeout} s",)
            raise
        except Cancelled as error:
            error.args = error.args or (CANCELLED_WHILE_RUNNING,)
            raise
        attempt.has_returned = True
        failpoints.reach("called")
        return returned

    def _chain(self, *, is_async: bool) -> Handler:
        """Return the function with the middleware of the project around it, as Django builds that of requests."""
        if not self._factories:
            return self._on_loop(_call) if is_async else self._within_time(_call)
        handler: Handler = _awatched if is_async else _watched
        on_loop = is_async
        for factory in reversed(self._factories):
            can_be_async = getattr(factory, "async_capable", False)
            # As in Django: the way changes only where a middleware can't go it.
            goes_on_loop = can_be_async and (on_loop or not getattr(factory, "sync_capable", True))
            if on_loop and not goes_on_loop:
                handler = self._on_loop(handler)
            elif goes_on_loop and not on_loop:
                handler = cast(Handler, sync_to_async(self._within_time(handler), thread_sensitive=True))
            handler, on_loop = middleware.made(factory, handler), goes_on_loop
            if on_loop and not iscoroutinefunction(handler):
                handler = _coroutine_function(handler)
        if on_loop:
            return self._on_loop(handler)
        return handler if is_async else self._within_time(handler)

    def _within_time(self, handler: Handler) -> Handler:
        run_within = self._deadlines.run_within

        def run(attempt: Attempt) -> Any:
            return run_within((attempt.number, attempt.job.id), attempt.task.timeout, handler, attempt)

        return run

    def _on_loop(self, handler: AsyncHandler) -> Handler:
        def run(attempt: Attempt) -> Any:
            if not hasattr(self._own, "synchronous"):  # it gives the synchronous parts of a thread's tasks one thread
                self._own.synchronous = ThreadSensitiveContext()
            sync = self._own.synchronous
            key, work = (attempt.number, attempt.job.id), partial(handler, attempt)
            return self._coroutines.run(key, work, timeout=attempt.task.timeout, sync=sync)

        return run


def _end_child(task: str) -> None:
    """End a process that a task forked: going on, it would be a second worker with the same job."""
    text = "%s forked process %d, which came back from the task. It was ended: end such a process by os._exit()."
    try:
        logger.error(text, task, os.getpid(), exc_info=sys.exc_info()[0] is not None)
    finally:
        os._exit(FORKED)


def _coroutine_function(handler: AsyncHandler) -> AsyncHandler:
    """Return an object with an asynchronous ``__call__`` as what the next middleware takes for asynchronous."""

    async def run(attempt: Attempt) -> Any:
        return await handler(attempt)

    return run


def _call(attempt: Attempt) -> Any:
    args = attempt.args if attempt.context is None else [attempt.context, *attempt.args]
    return attempt.task.func(*args, **attempt.kwargs)


def _watched(attempt: Attempt) -> Any:
    attempt.was_called = True
    try:
        attempt.returned = _call(attempt)
    except BaseException as error:
        attempt.error = error
        raise
    return attempt.returned


async def _awatched(attempt: Attempt) -> Any:
    attempt.was_called = True
    try:
        attempt.returned = await _call(attempt)
    except BaseException as error:
        attempt.error = error
        raise
    return attempt.returned


def _check(attempt: Attempt, returned: Any) -> None:
    """Raise an error if a middleware took the task's error or value for itself, or did not call the task."""
    if attempt.error is not None:
        attempt.error.add_note(f"{middleware.listed()} caught this error. The attempt failed all the same.")
        raise attempt.error
    if not attempt.was_called:
        raise InvalidMiddleware(
            f"{middleware.listed()} returned without a call of {attempt.task.module_path}. Call call_next(attempt), or "
            "raise GiveUp, Retry or Snooze."
        )
    if returned is None and attempt.returned is not None and attempt.recorder:
        attempt.has_returned = True
        raise InvalidMiddleware(
            f"{middleware.listed()} returned None in place of what {attempt.task.module_path} returned. Write 'return "
            "call_next(attempt)'."
        )


AFTER = 1.0  # seconds that a task has to end after its timeout was raised inside it, before its process is killed


class Expiry(Middleware):
    """Ends attempts of jobs that were claimed too late."""

    is_used = attrgetter("call.expires")

    def __call__(self, attempt: Attempt) -> Any:
        """See Middleware."""
        late = retry.expired(attempt.job, attempt.call)
        if late:
            return Failed(late, None if attempt.unknown else attempt.task, final=True)
        return self.call_next(attempt)


class Crashes(Middleware):
    """Has a job whose process died run alone, as long as its task has attempts."""

    is_used = attrgetter("job.crashes")

    def __call__(self, attempt: Attempt) -> Any:
        """See Middleware."""
        if not attempt.unknown and attempt.job.attempt > most_attempts(attempt.task):
            error = WorkerLost("its process died in the last of its attempts")
            return Failed(error, attempt.task, final=True)
        if not self.worker.isolate:
            return self.call_next(attempt)
        self.worker.isolate(attempt.number, attempt.job)
        return Departure()


class Presence(Middleware):
    """Makes known that a job runs: to the supervisor, to receivers of signals, to log lines and to the task itself."""

    def __call__(self, attempt: Attempt) -> Any:
        """See Middleware. From here on, an error is that of the task."""
        if attempt.unknown:
            raise attempt.unknown  # no feature took it
        worker, source, job, task = self.worker, attempt.source, attempt.job, attempt.task
        key, started = (attempt.number, job.id), monotonic()
        hard = None if task.timeout is None else started + task.timeout + AFTER
        worker.board.begin(attempt.slot, attempt.number, job.token, job.id, hard)
        failpoints.reach("begun")
        if signals.job_started.receivers:
            send_safely(signals.job_started, Presence, queue=source.queue_name, job=job, task=task)
        current = current_job.CurrentJob(
            source,
            job,
            attempt.recorder.keeps if attempt.recorder else None,
            interruptible=task.on_cancel == "raise",
            stops=worker.stops,
            parts=worker.parts,
            number=attempt.number,
        )
        if attempt.recorder:
            attempt.recorder.begin(attempt.call)
        worker.running[key] = current
        token = current_job.current.set(current)
        attempt.runs = True
        try:
            self.call_next(attempt)
            attempt.runs = False
        finally:
            attempt.seconds = monotonic() - started
            worker.running.pop(key, None)
            current_job.current.reset(token)
        if current.end:
            attempt.announcements += (partial(guarded, "The end of a task", partial(current.end, current), None),)
        if signals.job_succeeded.receivers:
            said = {"queue": source.queue_name, "job": job, "task": task}
            attempt.announcements += (partial(send_safely, signals.job_succeeded, Presence, **said),)
        return SUCCEEDED


class Chains:
    """The chains of a process, of the kit's middleware and that of features. Call is the end of each.

    From the outside to the task come the links by which a job leaves the worker, those around all that happens once it
    stays, Presence, and those around the task. Inside of Presence links see values and errors, outside of it endings.
    """

    def __init__(self, worker: WorkerContext) -> None:
        self._worker, self._call = worker, Call(worker)
        begin, task = feature.middleware("begin"), feature.middleware("task")
        links: list[type[Middleware]] = [Expiry, *feature.middleware("route"), Crashes, *begin, Presence, *task]
        links += feature.middleware("call")
        usage = [(link, is_used) for link in links if (is_used := link.usage(worker))]
        self.links, self._uses = [link for link, _ in usage], [is_used for _, is_used in usage]
        self._chains: dict[tuple[bool, ...], Handler] = {}  # by which links an attempt uses

    def of(self, attempt: Attempt) -> Handler:
        """Return the chain of an attempt: each set of links that attempts use has one."""
        used = tuple(map(bool, map(call, self._uses, repeat(attempt))))
        return self._chains.get(used) or self._chains.setdefault(used, self._made(used))

    def _made(self, used: Sequence[bool]) -> Handler:
        chain: Handler = self._call
        for link in reversed(list(compress(self.links, used))):
            chain = link(chain, self._worker)
        return chain


HERE = f"{Path(__file__).parents[2]}{os.sep}"  # a task's traceback begins with the task, below links of features
IDLE = 0.1  # seconds after which a thread's connections are checked before a job, too
Ending = Succeeded | Failed | Departure


class _Thread(local):
    """What is known of the thread that runs a job."""

    connected = True  # it may have connections to databases
    ended = 0.0  # when its last job ended, on the monotonic clock


_thread = _Thread()


def _note_connection(**kwargs: Any) -> None:
    _thread.connected = True


connection_created.connect(_note_connection)


def tidy() -> None:
    """Close this thread's database connections that are broken or too old, and those that a task left in a transaction.

    One that was interrupted as it ended its transaction leaves it open, and the next job would write into that.
    """
    _thread.connected = False
    if settings.DEBUG:
        reset_queries()
    for connection in connections.all(initialized_only=True):
        if connection.in_atomic_block:
            connection.close()
            del connections[connection.alias]
        else:
            connection.close_if_unusable_or_obsolete()
            _thread.connected = _thread.connected or connection.connection is not None


class JobRunner:
    """Runs jobs; shared by all threads of the worker."""

    def __init__(self, worker: WorkerContext, claims: Claims) -> None:
        self.worker, self.claims = worker, claims
        self._chains = Chains(worker)
        self._notes = [part.note for part in worker.parts.values() if part.note]
        self.recorder_of = feature.recorders()

    def cancel(self, job: JobKey) -> None:
        """Let the task of a job know that it was cancelled, and interrupt it unless it looks at that by itself."""
        running = self.worker.running.get(job)
        if running:
            running.cancelled = True
            if not running.interruptible:
                return
        if not self.worker.deadlines.cancel(job):
            self.worker.coroutines.cancel(job)

    def close(self) -> None:
        """Let the parts of features do what is left."""
        for name, part in self.worker.parts.items():
            guarded(f"The end of {name}", part.close, None)

    def process(self, slot: int, number: int, job: Job) -> list[Done]:
        """Run a job; record a failed attempt, also after an outage. Return it if it is done, with others beside it."""
        began = monotonic()
        if _thread.connected and began - _thread.ended > IDLE:
            guarded("The database connections of a thread", tidy, None)
        attempt = Attempt(slot, number, self.worker.sources[number], job)
        try:
            return copy_context().run(self._run, attempt)  # a language, a time zone and the like end with the job
        finally:
            if _thread.connected:
                guarded("The database connections of a thread", tidy, None)
            _thread.ended = ended = monotonic()
            self.worker.board.end(slot, attempt.jobs, ended - began)

    def run(self, slot: int, number: int, job: Job) -> list[Done]:
        """Do the same without a look at the thread's database connections."""
        return self._run(Attempt(slot, number, self.worker.sources[number], job))

    def _run(self, attempt: Attempt) -> list[Done]:
        """Run an attempt. An ending is recorded whatever fails."""
        try:
            ending = self._ending(attempt)
            if isinstance(ending, Succeeded):
                return [self._done(attempt)]
            if isinstance(ending, Departure):
                self.worker.board.lift(attempt.slot)
                done = ending.carry_out(attempt, self)
                attempt.jobs = len(done)
                return done
        except BaseException as error:  # of the worker itself, or of a plug-in
            ending = Failed(error)
        failure = FailedAttempt(
            attempt.source, attempt.job, ending.error, ending.task, attempt.recorder, ending.final, trace=attempt.trace
        )
        self.worker.board.lift(attempt.slot)
        self.record(failure)
        del failure, ending  # the error's traceback refers to this frame: in a circle, what the task had would live on
        return []

    def _ending(self, attempt: Attempt) -> Ending:
        try:
            attempt.load(self.recorder_of)
            ending: Ending = self._chains.of(attempt)(attempt)
        except BaseException as error:
            cut_frames(error, HERE)
            ending = ending_of(attempt, error)
        seconds = attempt.seconds
        if self._notes and seconds is not None and isinstance(ending, (Succeeded, Failed)):
            path, failed_now = attempt.call.task, ending is not SUCCEEDED
            for note in self._notes:
                note(attempt.number, path, seconds, attempt.job, failed=failed_now)
        try:
            return ending
        finally:
            del ending  # see _run()

    def _done(self, attempt: Attempt) -> Done:
        keep = attempt.recorder.keeps(failed=False) if attempt.recorder else 0
        job, source = attempt.job, attempt.source
        done = done_of(job, attempt.value, keep, source=source, number=attempt.number, seconds=attempt.seconds)
        if attempt.announcements:
            done = done._replace(announce=partial(_call_all, attempt.announcements))
        return done._replace(again=attempt.repeatable(done.ended)) if attempt.repeatable else done

    def record(self, failure: FailedAttempt, *, again: bool = False) -> None:
        """Record a failed attempt, also after an outage; ``again`` if that failed before."""
        failpoints.reach("before_nack")
        if not again:
            self.claims.recent.add([failure.repeatable()])
        try:
            recorded, state = until_answered(failure.record, self.worker.given_up)
        except BaseException as error:
            if not again:
                guarded("The log of a failed attempt", partial(failure.log_unrecorded, error), None)
            if not isinstance(error, (LeaseLost, *UNAVAILABLE)):
                whole = isinstance(error, RedisFailure) and not isinstance(error, CommandFailed)
                later = failure if whole else failure.plain()
                self.claims.retry_later(partial(self.record, later, again=True))
            return
        failpoints.reach("nacked")
        recorded.announce(state)


def _call_all(announcements: Sequence[Callable[[], object]]) -> None:
    for announce in announcements:
        announce()
