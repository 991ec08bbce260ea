"""The threads of a worker."""

import logging
from collections.abc import Callable
from threading import Lock, Thread

from redis_kit.queues.job import Job
from redis_kit.queues.worker.exchanger import Done
from redis_kit.queues.worker.fetcher import Fetcher

logger = logging.getLogger("redis_kit.worker")


class Manager:
    """Keeps threads that run one job after the other until the fetcher gives no more; the last one says so."""

    def __init__(
        self,
        threads: int,
        fetcher: Fetcher,
        *,
        process: Callable[[int, int, Job], Done | None],
        on_end: Callable[[], None],
    ) -> None:
        self._fetcher, self._process, self._on_end = fetcher, process, on_end
        self._lock = Lock()
        self._left = fetcher.threads = threads

    def start(self) -> None:
        """Start the threads. One that is busy at the end does not hold up the process."""
        for slot in range(self._left):
            Thread(target=self._work, args=(slot,), name=f"redis-kit-job-{slot}", daemon=True).start()

    def _work(self, slot: int) -> None:
        while item := self._next():
            source, job = item
            try:
                done = self._process(slot, source, job)
                if done:
                    self._fetcher.over(done)
                else:
                    self._fetcher.wake()
            except BaseException:
                logger.exception("Job %a: the worker itself failed.", job.id)
        with self._lock:
            self._left -= 1
            last = not self._left
        if last:
            self._on_end()

    def _next(self) -> tuple[int, Job] | None:
        while True:
            try:
                return self._fetcher.next()
            except Exception:
                logger.exception("Jobs could not be fetched; the next try follows.")
                self._fetcher.wake(1.0)
