"""A worker for tests: it runs jobs in the thread of the test."""

from collections.abc import Awaitable, Callable, Sequence
from threading import Event
from typing import Any

from asgiref.sync import async_to_sync

from redis_kit.core.client import addresses
from redis_kit.queues.jobs import ids
from redis_kit.queues.worker.run.event_loop import EventLoop
from redis_kit.queues.worker.run.outcome import FailedAttempt
from redis_kit.queues.worker.run.runner import JobRunner
from redis_kit.queues.worker.run.timeouts import JobKey, Timeouts
from redis_kit.queues.worker.shared.done import Done, RecentAcks
from redis_kit.queues.worker.shared.status_board import StatusBoard
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue


class _Here(EventLoop):
    """Runs the synchronous parts of asynchronous tasks in the thread of the test, which has its transaction open."""

    def run(self, job: JobKey, work: Callable[[], Awaitable[Any]], *, timeout: float | None, sync: Any) -> Any:
        """Run a coroutine and return its result."""

        async def awaited() -> Any:
            return await work()

        return async_to_sync(awaited)()


class _Runner(JobRunner):
    """Raises KeyboardInterrupt, also while a job runs, so that the tests stop."""

    def _record(self, failure: FailedAttempt, *, again: bool = False) -> None:
        super()._record(failure, again=again)
        if issubclass(type(failure.error), KeyboardInterrupt):
            raise failure.error


def drain(*names: str) -> int:
    """Run the ready jobs of some queues, until no job is ready. Return the number of jobs.

    Without a name it runs those of the queue ``default`` only. Jobs that these jobs enqueue run, too. A failed job is
    retried or dead, as in a worker. Delayed jobs stay in the queue, also those that wait for a retry. Timeouts of tasks
    are not enforced.

    Inside a ``TestCase`` a task is enqueued at the commit, which never comes, so drain() returns 0. Call ``enqueue()``
    under ``captureOnCommitCallbacks(execute=True)`` there.

    Raises ConfigurationError for a connection that is not for tests. One round trip for each job and two for a queue.
    """
    addresses.require_tests("default")
    worker, count = ids.new_worker(), 0
    sources = [WorkerQueue(name, worker=worker, about=ids.information()) for name in names or ("default",)]
    runs = processor(sources)
    while jobs := [(number, job) for number, source in enumerate(sources) for job in source.claim(1, worker=worker)]:
        for number, job in jobs:
            if done := runs.run(0, number, job):
                _end(sources[number], done)
        count += len(jobs)
    for source in sources:
        source.sign_off(worker=worker)
    return count


def processor(sources: Sequence[WorkerQueue]) -> JobRunner:
    """Return what runs a job of these queues in the thread that asks for it."""
    alone: dict[str, Any] = {
        "board": StatusBoard(1),
        "deadlines": Timeouts(),
        "coroutines": _Here(),
        "given_up": Event(),
    }
    return _Runner(sources, **alone, later=lambda call: None, recent=RecentAcks())


def _end(source: WorkerQueue, done: Done) -> None:
    source.exchange(0, [done.ended])
    if done.announce:
        done.announce()
