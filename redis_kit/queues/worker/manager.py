"""The threads of a worker, and which of them are free."""

import logging
from collections.abc import Callable
from queue import SimpleQueue
from threading import Condition, Thread

from redis_kit.queues.job import Job
from redis_kit.queues.worker.source import Source

logger = logging.getLogger("redis_kit.worker")


class Manager:
    """Hands each job to a free thread. ``on_free`` is called, in that thread, when it is done."""

    def __init__(self, threads: int, *, process: Callable[[Source, Job], None], on_free: Callable[[], None]) -> None:
        self.threads, self._process, self._on_free = threads, process, on_free
        self._inbox: SimpleQueue[tuple[Source, Job] | None] = SimpleQueue()
        self._changed = Condition()
        self._busy = 0

    def start(self) -> None:
        """Start the threads. One that is busy at the end does not hold up the process."""
        for number in range(self.threads):
            Thread(target=self._work, name=f"redis-kit-job-{number}", daemon=True).start()

    def stop(self) -> None:
        """End the threads, each when its job is done."""
        for _ in range(self.threads):
            self._inbox.put(None)

    @property
    def busy(self) -> int:
        """Return how many jobs are being run."""
        return self._busy

    @property
    def free(self) -> int:
        """Return how many threads have nothing to do."""
        return self.threads - self._busy

    def give(self, source: Source, job: Job) -> None:
        """Have a job run. There must be a free thread."""
        with self._changed:
            self._busy += 1
        self._inbox.put((source, job))

    def wait_free(self) -> None:
        """Return when a thread has nothing to do."""
        with self._changed:
            self._changed.wait_for(lambda: self._busy < self.threads)

    def _work(self) -> None:
        while item := self._inbox.get():
            source, job = item
            try:
                self._process(source, job)
            except BaseException:
                logger.exception("Job %a of queue %a: the worker itself failed.", job.id, source.name)
            with self._changed:
                self._busy -= 1
                self._changed.notify_all()
            self._on_free()
