"""Starts and stops a worker's loops."""

import logging
import signal
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Event, Thread
from time import monotonic
from typing import Any, Literal, NamedTuple

from redis_kit.core.errors import RedisFailure
from redis_kit.queues import identity
from redis_kit.queues.worker.alarm import Alarm
from redis_kit.queues.worker.beat import Beat
from redis_kit.queues.worker.deadlines import Deadlines
from redis_kit.queues.worker.fetcher import Fetcher
from redis_kit.queues.worker.listener import Listener
from redis_kit.queues.worker.manager import Manager
from redis_kit.queues.worker.processor import Processor
from redis_kit.queues.worker.source import Source

logger = logging.getLogger("redis_kit.worker")
JOIN = 2.0  # seconds: a call to a silent server may take that long


class Options(NamedTuple):
    """What a worker is told: its queues in strict order, its threads, the seconds it has to finish, when it ends."""

    queues: tuple[str, ...]
    threads: int = 8
    grace: float = 25.0
    burst: bool = False


class Launcher:
    """One worker process."""

    def __init__(self, options: Options) -> None:
        self.options, self.worker = options, identity.new_worker()
        about = identity.information(queues=options.queues, threads=options.threads)
        self.sources = [Source(name, worker=self.worker, about=about) for name in options.queues]
        # The only kind of queue that a signal handler may put into.
        self._events: SimpleQueue[Literal["stop", "free"]] = SimpleQueue()
        self._alarm, self._stopping, self._given_up = Alarm(), Event(), Event()
        self._deadlines = Deadlines()
        processor = Processor(self._deadlines, given_up=self._given_up)
        self.manager = Manager(options.threads, process=processor.process, on_free=self._freed)
        self._beat = Beat(self.sources, alarm=self._alarm)
        self._threads: list[Thread] = []

    def run(self) -> bool:
        """Work until a signal, or with ``burst`` until nothing is ready; say whether all jobs came to an end."""
        before = self._listen_to_signals()
        try:
            self._start()
            self._wait_for("stop")
            self._stopping.set()
            self._alarm.set(0)
            finished = self._finish()
            self._given_up.set()
            self._leave()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        return finished

    def stop(self) -> None:
        """Stop claiming and let the jobs end; called again, give them back now. Safe in a signal handler."""
        self._events.put("stop")

    def _listen_to_signals(self) -> dict[int, Any]:
        if threading.current_thread() is not threading.main_thread():
            return {}
        return {number: signal.signal(number, lambda *_: self.stop()) for number in (signal.SIGTERM, signal.SIGINT)}

    def _start(self) -> None:
        shared: dict[str, Any] = {"alarm": self._alarm, "stopping": self._stopping}
        on_empty = self.stop if self.options.burst else lambda: None
        fetcher = Fetcher(self.sources, self.manager, on_empty=on_empty, **shared)
        self.manager.start()
        self._threads = [self._thread(self._beat.run, "beat"), self._thread(fetcher.run, "fetcher")]
        self._thread(self._deadlines.run, "deadlines")
        if not self.options.burst:
            for source in self.sources:
                self._thread(Listener(source, self.manager, **shared).run, f"listener-{source.name}")
        logger.info("Worker %s works on %s with %d threads.", self.worker, self.options.queues, self.options.threads)

    def _thread(self, target: Callable[[], None], name: str) -> Thread:
        thread = Thread(target=target, name=f"redis-kit-{name}", daemon=True)
        thread.start()
        return thread

    def _freed(self) -> None:
        self._alarm.set(0)
        if self._stopping.is_set():
            self._events.put("free")

    def _finish(self) -> bool:
        deadline = monotonic() + self.options.grace
        while self.manager.busy:
            try:
                if self._events.get(timeout=max(0.001, deadline - monotonic())) == "stop":
                    return False
            except Empty:
                return False
        return True

    def _wait_for(self, event: str) -> None:
        while self._events.get() != event:
            pass

    def _leave(self) -> None:
        self._beat.stop()
        self._deadlines.stop()
        self.manager.stop()
        for thread in self._threads:
            thread.join(JOIN)
        for source in self.sources:
            try:
                if count := source.leave(worker=self.worker):
                    logger.warning("Queue %a: gave back %d jobs.", source.name, count)
            except RedisFailure as error:
                logger.warning("Queue %a: could not take leave: %s", source.name, error)
        logger.info("Worker %s has stopped.", self.worker)
