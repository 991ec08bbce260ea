"""Starts and stops the loops of a child process."""

import logging
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Event, Thread
from time import monotonic

from redis_kit.core.errors import RedisFailure
from redis_kit.queues import signals
from redis_kit.queues.worker.board import Board
from redis_kit.queues.worker.coroutines import Coroutines
from redis_kit.queues.worker.deadlines import Deadlines
from redis_kit.queues.worker.fetcher import Fetcher
from redis_kit.queues.worker.line import Line
from redis_kit.queues.worker.listener import Listener
from redis_kit.queues.worker.manager import Manager
from redis_kit.queues.worker.options import Options
from redis_kit.queues.worker.order import Order
from redis_kit.queues.worker.processor import Processor
from redis_kit.queues.worker.source import Source

logger = logging.getLogger("redis_kit.worker")
STOPPED, ORPHANED = 0, 1  # how a child process ends


class Launcher:
    """One child process: it does what its supervisor says, and nothing without one."""

    def __init__(self, options: Options, *, worker: str, about: str, line: Line, board: Board) -> None:
        self.options, self.worker, self._line = options, worker, line
        self._sources = [Source(name, worker=worker, about=about) for name in options.queues]
        self._events: SimpleQueue[str] = SimpleQueue()
        self._given_up, self._stopping = Event(), Event()
        self._deadlines, self._coroutines = Deadlines(), Coroutines()
        self._fetcher = Fetcher(
            self._sources,
            board=board,
            order=Order(len(self._sources), options.weights),
            on_empty=self._empty,
        )
        processor = Processor(
            self._sources,
            board=board,
            deadlines=self._deadlines,
            coroutines=self._coroutines,
            given_up=self._given_up,
        )
        ended = lambda: self._events.put("ended")  # noqa: E731 -- the threads' last word
        self._manager = Manager(options.threads, self._fetcher, process=processor.process, on_end=ended)

    def run(self) -> int:
        """Work until told to stop, or with ``burst`` until nothing is ready; return the exit code of the process."""
        self._start()
        event = self._wait_for("stop", "now", "gone")
        self._stopping.set()
        signals.worker_stopping.send_robust(Launcher, worker=self.worker)
        self._fetcher.stop()
        if event == "stop":
            event = self._wait_for("ended", "now", "gone", seconds=self.options.grace)
        self._given_up.set()
        self._leave()
        return ORPHANED if event == "gone" else STOPPED

    def _start(self) -> None:
        self._manager.start()
        threads: dict[str, Callable[[], None]] = {
            "watch": self._fetcher.watch,
            "deadlines": self._deadlines.run,
            "orders": self._take_orders,
        }
        if not self.options.burst:
            for source in self._sources:
                threads[f"listener-{source.name}"] = Listener(source, self._fetcher, stopping=self._stopping).run
        for name, target in threads.items():
            Thread(target=target, name=f"redis-kit-{name}", daemon=True).start()
        self._line.say("up")
        signals.worker_started.send_robust(Launcher, worker=self.worker)

    def _take_orders(self) -> None:
        for word, *arguments in self._line.read():
            if word == "look":
                self._fetcher.wake(float(arguments[1]))
            elif word == "cancel":
                self._cancel(arguments[1])
            elif word == "quiet":
                self._fetcher.quiet()
            else:
                self._events.put(word)
        self._events.put("gone")

    def _cancel(self, job: str) -> None:
        if self._deadlines.cancel(job) or self._coroutines.cancel(job):
            logger.info("Job %a is cancelled.", job)

    def _empty(self) -> None:
        if self.options.burst:
            self._events.put("stop")

    def _wait_for(self, *events: str, seconds: float | None = None) -> str:
        deadline = None if seconds is None else monotonic() + seconds
        while True:
            try:
                event = self._events.get(timeout=None if deadline is None else max(0.0, deadline - monotonic()))
            except Empty:
                return ""
            if event in events:
                return event

    def _leave(self) -> None:
        self._deadlines.stop()
        self._fetcher.flush()
        for source in self._sources:
            try:
                if count := source.leave(worker=self.worker):
                    logger.warning("Queue %a: gave back %d jobs.", source.name, count)
            except RedisFailure as error:
                logger.warning("Queue %a: could not take leave: %s", source.name, error)
        logger.info("Worker %s has stopped.", self.worker)
