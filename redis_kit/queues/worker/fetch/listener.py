"""Waits on the server for wake-ups of a queue."""

from itertools import count
from threading import Event

from redis_kit.core.errors import RedisFailure
from redis_kit.queues.worker.fetch.fetcher import Fetcher
from redis_kit.queues.worker.shared.reconnect import pause
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue


class Listener:
    """Listens to one queue while a thread is free. A busy worker must not take wake-ups from idle ones."""

    def __init__(self, number: int, source: WorkerQueue, fetcher: Fetcher, *, stopping: Event) -> None:
        self._number, self._source, self._fetcher, self._stopping = number, source, fetcher, stopping

    def run(self) -> None:
        """Listen until the worker stops."""
        failures = count()
        while self._fetcher.wait_free():
            try:
                self._listen()
                failures = count()
            except RedisFailure:
                self._stopping.wait(pause(next(failures)))

    def _listen(self) -> None:
        if self._source.listen() and not self._fetcher.take_wake_up(self._number):
            self._source.pass_on()
