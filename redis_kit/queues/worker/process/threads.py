"""The threads of a worker."""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock, Thread
from time import sleep

from redis_kit.queues.jobs.job import Job
from redis_kit.queues.worker.fetch.fetcher import Fetcher
from redis_kit.queues.worker.shared.done import Done

logger = logging.getLogger("redis_kit.worker")
PAUSE = 0.5  # seconds until a thread that failed goes on


class ThreadPool:
    """Threads that run one job after the other until the fetcher has no more. The last one calls ``on_end``."""

    def __init__(
        self,
        threads: int,
        fetcher: Fetcher,
        *,
        process: Callable[[int, int, Job], Sequence[Done]],
        on_end: Callable[[], None],
    ) -> None:
        self._fetcher, self._process, self._on_end = fetcher, process, on_end
        self._lock = Lock()
        self._left = threads

    def start(self) -> None:
        """Start the threads."""
        for slot in range(self._left):
            start_thread(f"job-{slot}", partial(self._work, slot))

    def _work(self, slot: int) -> None:
        while claimed := self._next(slot):
            source, job = claimed
            try:
                done = self._process(slot, source, job)
                for item in done:
                    self._fetcher.add_done(item)
                if not done:
                    self._fetcher.wake()
            except BaseException:
                logger.exception("Job %a: the worker itself failed.", job.id)
        with self._lock:
            self._left -= 1
            last = not self._left
        if last:
            self._on_end()

    def _next(self, slot: int) -> tuple[int, Job] | None:
        try:
            return self._fetcher.next(slot)
        except BaseException:
            self._fetcher.wake(1.0)
            raise


def start_thread(name: str, work: Callable[[], object]) -> None:
    """Run this in a thread until it returns. Any error is logged, even SystemExit, and it is started again.

    A thread that is busy when the process ends does not delay that.
    """
    Thread(target=_outlive, args=(name, work), name=f"redis-kit-{name}", daemon=True).start()


def _outlive(name: str, work: Callable[[], object]) -> None:
    while True:
        try:
            work()
            return
        except BaseException:
            logger.exception("Thread %s of the worker failed; restarting it.", name)
            sleep(PAUSE)
