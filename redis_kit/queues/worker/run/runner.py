"""Runs one job: from its message to the recorded ending."""

import logging
import os
from collections.abc import Callable, Sequence
from contextvars import copy_context
from functools import partial
from pathlib import Path
from threading import local
from time import monotonic
from typing import Any

from django.conf import settings
from django.db import connections, reset_queries
from django.db.backends.signals import connection_created

from redis_kit.core.errors import CommandFailed, RedisFailure
from redis_kit.core.logs.error_text import cut_frames, described
from redis_kit.queues.engine.job import Job
from redis_kit.queues.errors import LeaseLost
from redis_kit.queues.worker.run.attempt import ISOLATED, SUCCEEDED, Attempt, Failed, Isolated, Succeeded
from redis_kit.queues.worker.run.chain import Chains
from redis_kit.queues.worker.run.endings import Claims, Departure, Postponed, ending_of
from redis_kit.queues.worker.run.middleware import WorkerContext
from redis_kit.queues.worker.run.outcome import FailedAttempt, failed
from redis_kit.queues.worker.run.timeouts import JobKey
from redis_kit.queues.worker.shared import failpoints
from redis_kit.queues.worker.shared.done import Done, done_of
from redis_kit.queues.worker.shared.logs import guarded
from redis_kit.queues.worker.shared.reconnect import UNAVAILABLE, until_answered

logger = logging.getLogger("redis_kit.worker")
HERE = f"{Path(__file__).parents[2]}{os.sep}"  # a task's traceback begins with the task, below links of features
IDLE = 0.1  # seconds after which a thread's connections are checked before a job, too
Ending = Succeeded | Failed | Postponed | Departure | Isolated


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
    for connection in connections.all(initialized_only=True):
        if connection.in_atomic_block:
            connection.close()
            del connections[connection.alias]
        else:
            connection.close_if_unusable_or_obsolete()
            _thread.connected = _thread.connected or connection.connection is not None


class JobRunner:
    """Runs jobs; shared by all threads of the worker. ``isolate`` runs one in a process of its own."""

    def __init__(
        self, worker: WorkerContext, claims: Claims, *, isolate: Callable[[int, Job], None] | None = None
    ) -> None:
        worker.isolates = isolate is not None
        self.worker, self.claims, self._isolate = worker, claims, isolate
        self._chains = Chains(worker)
        self._notes = [part.note for part in worker.parts.values() if part.note]
        self._backends: dict[str, Any] = {}

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

    def load(self, attempt: Attempt) -> None:
        """Read the call of an attempt, and find its task."""
        attempt.load(self._backends)

    def record(self, failure: FailedAttempt) -> None:
        """Record a failed attempt."""
        self._record(failure)

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
            self.worker.board.end(slot)
            self.worker.board.tally(attempt.jobs, ended - began)
            if settings.DEBUG:
                reset_queries()

    def run(self, slot: int, number: int, job: Job) -> list[Done]:
        """Do the same without a look at the thread's database connections."""
        return self._run(Attempt(slot, number, self.worker.sources[number], job))

    def _run(self, attempt: Attempt) -> list[Done]:
        """Run an attempt. An ending is recorded whatever fails."""
        try:
            ending = self._ending(attempt)
            if ending is SUCCEEDED:
                return [self._done(attempt)]
            if not isinstance(ending, Failed):
                return self._end(attempt, ending)
        except BaseException as error:  # of the worker itself, or of a plug-in
            attempt.jobs, ending = 1, Failed(error)
        failure = failed(
            attempt.source,
            attempt.job,
            ending.error,
            task=ending.task,
            recorder=attempt.recorder,
            final=ending.final,
            trace=attempt.trace,
        )
        self._record(failure)
        del failure, ending  # the error's traceback refers to this frame: in a circle, what the task had would live on
        return []

    def _ending(self, attempt: Attempt) -> Ending:
        try:
            attempt.load(self._backends)
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

    def _end(self, attempt: Attempt, ending: Ending) -> list[Done]:
        """Record the ending of an attempt that neither succeeded nor failed, and return the jobs that are done."""
        attempt.jobs = 0
        if isinstance(ending, Departure):
            done = ending.carry_out(attempt, self)
            attempt.jobs = len(done)
            return done
        if ending is ISOLATED and self._isolate:
            self._isolate(attempt.number, attempt.job)
        elif isinstance(ending, Postponed):
            self._give_back(ending)
        return []

    def _done(self, attempt: Attempt) -> Done:
        keep = attempt.recorder.keeps(failed=False) if attempt.recorder else 0
        done = done_of(
            attempt.job, attempt.value, keep, source=attempt.source, number=attempt.number, seconds=attempt.seconds
        )
        if attempt.announcements:
            done = done._replace(announce=partial(_call_all, attempt.announcements))
        return done._replace(again=attempt.repeatable(done.ended)) if attempt.repeatable else done

    def _give_back(self, postponed: Postponed, *, again: bool = False) -> None:
        try:
            failure = until_answered(postponed.give_back, self.worker.given_up)
        except (LeaseLost, RedisFailure) as error:
            if not again:
                job, source = postponed.attempt.job, postponed.attempt.source
                details = job.id, source.name, described(error), postponed.why
                logger.warning("Job %a of queue %a could not be returned: %s; %s", *details)
            if not isinstance(error, (LeaseLost, *UNAVAILABLE)):
                self.claims.retry_later(partial(self._give_back, postponed, again=True))
            return
        if failure:
            self._record(failure)

    def _record(self, failure: FailedAttempt, *, again: bool = False) -> None:
        failpoints.reach("before_nack")
        if not again:
            self.claims.recent.add([failure.repeatable()])
        try:
            state = until_answered(failure.record, self.worker.given_up)
        except BaseException as error:
            if not again:
                guarded("The log of a failed attempt", partial(failure.log_unrecorded, error), None)
            if not isinstance(error, (LeaseLost, *UNAVAILABLE)):
                whole = isinstance(error, RedisFailure) and not isinstance(error, CommandFailed)
                later = failure if whole else failure.plain()
                self.claims.retry_later(partial(self._record, later, again=True))
            return
        failpoints.reach("nacked")
        failure.announce(state)


def _call_all(announcements: Sequence[Callable[[], object]]) -> None:
    for announce in announcements:
        announce()
