"""A worker for tests: it runs jobs in the thread of the test."""

import warnings
from collections.abc import Awaitable, Callable, Sequence
from threading import Event
from typing import Any

from asgiref.sync import async_to_sync
from django.db import transaction

from redis_kit.core.client import addresses
from redis_kit.queues.engine import ids
from redis_kit.queues.engine.feature import Process, process_parts
from redis_kit.queues.engine.job import Job
from redis_kit.queues.engine.spread import spread
from redis_kit.queues.errors import Retry
from redis_kit.queues.inspection import queue_counts, queue_names
from redis_kit.queues.tasks.enqueue import WaitingCall
from redis_kit.queues.worker.run.attempt import WorkerContext
from redis_kit.queues.worker.run.endings import FailedAttempt
from redis_kit.queues.worker.run.runner import JobRunner
from redis_kit.queues.worker.run.timeouts import EventLoop, JobKey
from redis_kit.queues.worker.shared.status_board import StatusBoard
from redis_kit.queues.worker.shared.worker_queue import Claims, WorkerQueue


class _Here(EventLoop):
    """Runs the synchronous parts of asynchronous tasks in the thread of the test, which has its transaction open."""

    def run(self, job: JobKey, work: Callable[[], Awaitable[Any]], *, timeout: float | None, sync: Any) -> Any:
        """Run a coroutine and return its result."""

        async def awaited() -> Any:
            return await work()

        return async_to_sync(awaited)()


class _Runner(JobRunner):
    """Raises KeyboardInterrupt, also while a job runs, so that the tests stop; on request, any error of a task."""

    raise_errors = False

    def record(self, failure: FailedAttempt, *, again: bool = False) -> None:
        """See JobRunner."""
        super().record(failure, again=again)
        kind = type(failure.error)
        if issubclass(kind, KeyboardInterrupt) or (self.raise_errors and not issubclass(kind, Retry)):
            raise failure.error


class _Alone(Claims):
    def put_off(self, number: int, jobs: Sequence[Job], seconds: float) -> None:
        """Fail the test: to claim the job again and again would not end."""
        ids = ", ".join(ascii(job.id) for job in jobs)
        raise RuntimeError(f"Job {ids} was to be handed over, and the other system is unavailable; see the log.")


def drain(*names: str, raise_errors: bool = False) -> int:
    """Run the ready jobs of some queues, until no job is ready. Return the number of jobs.

    Without a name it runs those of the queue ``default`` only. Jobs that these jobs enqueue run, too. A failed job is
    retried or dead, as in a worker. With ``raise_errors`` the error of the first attempt that fails is raised here,
    after it is recorded; ``Retry`` is not. Delayed jobs stay in the queue, also those that wait for a retry. Timeouts
    of tasks are not enforced.

    Inside a ``TestCase`` a task is enqueued at the commit, which never comes, so drain() returns 0. Call ``enqueue()``
    under ``captureOnCommitCallbacks(execute=True)`` there. If no job ran, a RuntimeWarning names calls that wait for
    the commit, else other queues with ready jobs, else scheduled jobs.

    Raises ConfigurationError for a connection that is not for tests. One round trip for each job and two for a queue.
    """
    addresses.require_tests("default")
    names = names or ("default",)
    worker, count = ids.new_worker(), 0
    shards = [shard for name in names for shard in spread().names(name)]
    sources = [WorkerQueue(shard, worker=worker, about=ids.information()) for shard in shards]
    runs = processor(sources, raise_errors=raise_errors)
    try:
        while jobs := [
            (number, job) for number, source in enumerate(sources) for job in source.claim(1, worker=worker)
        ]:
            for number, job in jobs:
                for done in runs.run(0, number, job):
                    sources[number].exchange(0, [done.ended])
                    if done.announce:
                        done.announce()
            count += len(jobs)
    finally:
        runs.close()
        for source in sources:
            source.sign_off(worker=worker)
    if not count and (why := _why_none(names)):
        warnings.warn(f"drain() ran no job. {why}", RuntimeWarning, stacklevel=2)
    return count


def _why_none(names: Sequence[str]) -> str:
    """Return which jobs there are that drain() does not run; "" without any. Two round trips."""
    waiting = [call for _, call, *_ in transaction.get_connection().run_on_commit if isinstance(call, WaitingCall)]
    if number := sum(not call.has_run for call in waiting):
        tasks = "1 task waits" if number == 1 else f"{number} tasks wait"
        return f"{tasks} for the transaction to commit; use captureOnCommitCallbacks(execute=True)."
    counts = queue_counts([*names, *queue_names()], errors={})
    if ready := [queue for queue, count in counts.items() if count.ready and queue not in names]:
        return f"Ready jobs are in: {', '.join(ready)}."
    if number := sum(counts[name].scheduled for name in counts if name in names):
        jobs = "1 job is" if number == 1 else f"{number} jobs are"
        return f"{jobs} scheduled for later; run_now() of the queue makes a job ready."
    return ""


def processor(sources: Sequence[WorkerQueue], *, raise_errors: bool = False) -> JobRunner:
    """Return what runs a job of these queues in the thread that asks for it."""
    parts = process_parts(Process("test", "", sources, Event()))
    runner = _Runner(WorkerContext(sources, StatusBoard(1), parts=parts, coroutines=_Here()), _Alone())
    runner.raise_errors = raise_errors
    return runner
