"""Starts and stops a worker's loops."""

import logging
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Event, Thread
from time import monotonic
from typing import Any, Literal

from redis_kit.core.errors import RedisFailure
from redis_kit.queues import identity
from redis_kit.queues.job import Job
from redis_kit.queues.worker.alarm import Alarm
from redis_kit.queues.worker.board import Board
from redis_kit.queues.worker.deadlines import Deadlines
from redis_kit.queues.worker.fetcher import Fetcher
from redis_kit.queues.worker.limits import Limits, hard_end
from redis_kit.queues.worker.line import Line
from redis_kit.queues.worker.listener import Listener
from redis_kit.queues.worker.manager import Manager
from redis_kit.queues.worker.options import Options
from redis_kit.queues.worker.processor import Processor
from redis_kit.queues.worker.source import Source

logger = logging.getLogger("redis_kit.worker")
JOIN = 2.0  # seconds: a call to a silent server may take that long


class Launcher:
    """One worker process. ``line`` brings its supervisor's orders, ``board`` shows that what it does."""

    def __init__(
        self,
        options: Options,
        *,
        worker: str = "",
        about: str = "",
        line: Line | None = None,
        board: Board | None = None,
    ) -> None:
        self.options, self.worker = options, worker or identity.new_worker()
        self._line, self._board = line, board or Board(options.threads)
        self._slots = SimpleQueue[int]()
        for slot in range(options.threads):
            self._slots.put(slot)
        self._limits = Limits(options, self._board, line) if line else None
        about = about or identity.information(queues=options.queues, threads=options.threads)
        self.sources = [Source(name, worker=self.worker, about=about) for name in options.queues]
        self._events: SimpleQueue[Literal["stop", "now", "free"]] = SimpleQueue()
        self._alarm, self._stopping, self._given_up = Alarm(), Event(), Event()
        self._deadlines = Deadlines()
        self._processor = Processor(self._deadlines, given_up=self._given_up)
        self.manager = Manager(options.threads, process=self._process, on_free=self._freed)
        self._threads: list[Thread] = []
        self._orphaned = False

    def run(self) -> int:
        """Work until told to stop, or with ``burst`` until nothing is ready; 1 when the supervisor is gone, else 0."""
        self._start()
        self._wait_for("stop", "now")
        self._stopping.set()
        self._alarm.set(0)
        self._finish()
        self._given_up.set()
        self._leave()
        return int(self._orphaned)

    def stop(self) -> None:
        """Stop claiming and let the jobs end."""
        self._events.put("stop")

    def _obey(self, line: Line) -> None:
        for word, *arguments in line.read():
            if word == "look":
                self._alarm.set(float(arguments[1]))
            elif word == "quiet":
                self._stopping.set()
            elif word == "stop":
                self.stop()
            elif word == "now":
                self._events.put("now")
                self._events.put("now")
        self._orphaned = True
        self._events.put("now")
        self._events.put("now")

    def _process(self, source: Source, job: Job) -> None:
        slot = self._slots.get()
        self._board.begin(slot, self.sources.index(source), job.token, job.id, hard_end(job))
        try:
            self._processor.process(source, job)
        finally:
            self._board.end(slot)
            self._board.tally(1)
            self._slots.put(slot)

    def _start(self) -> None:
        shared: dict[str, Any] = {"alarm": self._alarm, "stopping": self._stopping}
        on_empty = self.stop if self.options.burst else lambda: None
        fetcher = Fetcher(self.sources, self.manager, on_empty=on_empty, **shared)
        self.manager.start()
        self._threads = [self._thread(fetcher.run, "fetcher")]
        if self._line:
            line = self._line
            self._thread(lambda: self._obey(line), "line")
            line.say("up")
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
        if self._limits and self._limits.check():
            self._stopping.set()
        self._alarm.set(0)
        if self._stopping.is_set():
            self._events.put("free")

    def _finish(self) -> None:
        deadline = monotonic() + self.options.grace
        while self.manager.busy:
            try:
                if self._events.get(timeout=max(0.001, deadline - monotonic())) == "now":
                    return
            except Empty:
                return

    def _wait_for(self, *events: str) -> None:
        while self._events.get() not in events:
            pass

    def _leave(self) -> None:
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
