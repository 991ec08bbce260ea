"""Runs jobs in a test's own thread, as a worker would."""

from collections.abc import Awaitable, Callable, Sequence
from threading import Event
from typing import Any

from asgiref.sync import async_to_sync

from redis_kit.queues.jobs import ids
from redis_kit.queues.worker.run.event_loop import EventLoop
from redis_kit.queues.worker.run.outcome import FailedAttempt
from redis_kit.queues.worker.run.runner import JobRunner
from redis_kit.queues.worker.run.timeouts import JobKey, Timeouts
from redis_kit.queues.worker.shared.done import Done, RecentAcks
from redis_kit.queues.worker.shared.status_board import StatusBoard
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue


class _Here(EventLoop):
    """Runs synchronous parts of asynchronous tasks in the test's thread, in whose transaction the test is."""

    def run(self, job: JobKey, work: Callable[[], Awaitable[Any]], *, timeout: float | None, sync: Any) -> Any:
        """Run a coroutine and return its result."""

        async def awaited() -> Any:
            return await work()

        return async_to_sync(awaited)()


class _Processor(JobRunner):
    """Lets who runs the tests stop them, also while a job runs."""

    def _record(self, failure: FailedAttempt, *, again: bool = False) -> None:
        super()._record(failure, again=again)
        if issubclass(type(failure.error), KeyboardInterrupt):
            raise failure.error


def drain(*names: str) -> int:
    """Run the ready jobs of some queues, ``default`` where none is named, until none is left; return how many ran.

    A job that a job enqueues is run too. One that fails is retried or buried as by a worker; one that is delayed, a
    retry with its backoff among them, stays. Timeouts of tasks are not enforced.
    """
    worker, count = ids.new_worker(), 0
    sources = [WorkerQueue(name, worker=worker, about=ids.information()) for name in names or ("default",)]
    runs = processor(sources)
    while jobs := [(number, job) for number, source in enumerate(sources) for job in source.claim(1, worker=worker)]:
        for number, job in jobs:
            if done := runs.run(0, number, job):
                _end(sources[number], done)
        count += len(jobs)
    for source in sources:
        source.leave(worker=worker)
    return count


def processor(sources: Sequence[WorkerQueue]) -> JobRunner:
    """Return what runs a job of these queues in the thread that asks for it."""
    alone: dict[str, Any] = {
        "board": StatusBoard(1),
        "deadlines": Timeouts(),
        "coroutines": _Here(),
        "given_up": Event(),
    }
    return _Processor(sources, **alone, later=lambda call: None, recent=RecentAcks())


def _end(source: WorkerQueue, done: Done) -> None:
    source.exchange(0, [done.ended])
    if done.told:
        done.told()
