"""The part of a worker that runs in a process of Celery: it claims jobs by id, runs them, and keeps its lease alive."""

import logging
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from secrets import token_urlsafe
from threading import Event, Lock, get_ident
from time import monotonic

from redis_kit.core import conf
from redis_kit.core.errors import RedisFailure
from redis_kit.queues.engine import claim, ids
from redis_kit.queues.engine.feature import Process, process_parts
from redis_kit.queues.engine.job import Job, member
from redis_kit.queues.settings import QueueSettings
from redis_kit.queues.tasks import discovery
from redis_kit.queues.worker.process import start_thread
from redis_kit.queues.worker.run.attempt import WorkerContext
from redis_kit.queues.worker.run.runner import JobRunner
from redis_kit.queues.worker.run.timeouts import Timeouts
from redis_kit.queues.worker.shared.failures import Outage, guarded, until_answered
from redis_kit.queues.worker.shared.status_board import StatusBoard
from redis_kit.queues.worker.shared.worker_queue import Claims, Done, WorkerQueue, send_heartbeats

logger = logging.getLogger("redis_kit.worker")
IDLE = 10.0  # seconds without a job after which the process signs off


class Fleet:
    """Runs jobs in the threads of Celery that ask for it. One per process.

    For the kit it is a worker from a first job until a while without any. The next job begins with a new worker id, so
    that the end of the old worker does not concern it.
    """

    def __init__(self, stops: Callable[[], bool]) -> None:
        self._worker = ids.new_worker()
        self._lock = Lock()
        self._sources: list[WorkerQueue] = []
        self._running: Counter[int] = Counter()
        self._held: set[bytes] = set()  # claims of jobs that run, or whose end is being recorded
        self._suspects: dict[int, set[bytes]] = {}  # by queue, claims that only the server had at the last heartbeat
        self._last, self._beats = 0.0, False
        self._given_up, self._outage = Event(), Outage()
        self._deadlines = Timeouts()
        self._parts = process_parts(Process("celery", self._worker, self._sources, self._given_up))
        context = WorkerContext(
            self._sources,
            StatusBoard(1),
            deadlines=self._deadlines,
            given_up=self._given_up,
            stops=stops,
            parts=self._parts,
        )
        self._runner = JobRunner(context, Claims())
        if get_ident() not in sys._current_frames():
            logger.warning(
                "Timeouts and cancel() don't interrupt tasks in this pool: its threads are not those of Python."
            )
        discovery.discover()
        start_thread("deadlines", self._deadlines.run)

    def run(self, queue: str, id: str, version: str, token: str) -> None:
        """Claim a job by its id and run it. Waits for the server while that is unavailable."""
        number = self._number(queue)
        source = self._sources[number]
        with self._busy(number):
            given = {"version": version, "token": token, "about": source.about}
            steps = partial(claim.claim_by_id, source, self._worker, token_urlsafe(6), id, **given)
            job: Job | None = until_answered(lambda: source.run_flow(steps()), self._given_up, self._outage)
            if job is None:
                logger.info("Job %a of queue %a was handed over and is not to run any more.", id, queue)
                return
            self._held.add(member(job))
            try:
                for done in self._runner.process(0, number, job):
                    self._end(source, done)
            finally:
                self._held.discard(member(job))
                self._flush()  # Celery may end this process at any time

    def close(self) -> None:
        """End its threads. Jobs that run now are ready again when its lease is over."""
        self._given_up.set()
        self._deadlines.stop()

    def _flush(self) -> None:
        for name, part in self._parts.items():
            guarded(f"The end of {name}", part.flush, None)

    def _end(self, source: WorkerQueue, done: Done) -> None:
        def acknowledge() -> list[int]:
            return source.run_flow(claim.acknowledge(source, self._worker, [done.ended]))

        if until_answered(acknowledge, self._given_up, self._outage):
            logger.warning("An outcome could not be recorded: %s", claim.lost(source, [done.job]))
        elif done.announce:
            done.announce()

    def _number(self, queue: str) -> int:
        with self._lock:
            names = [source.name for source in self._sources]
            if queue not in names:
                about = ids.information(queues=[queue], threads=1)
                self._sources.append(WorkerQueue(queue, worker=self._worker, about=about))
                return len(names)
            return names.index(queue)

    @contextmanager
    def _busy(self, number: int) -> Iterator[None]:
        with self._lock:
            if not self._beats:
                start_thread("celery", self._keep_alive)  # raises if the system allows no more threads
                self._beats = True
            self._running[number] += 1
        try:
            yield
        finally:
            with self._lock:
                self._running[number] -= 1
                self._last = monotonic()

    def _keep_alive(self) -> None:
        """Send heartbeats while a job runs, and for a moment after it. Then sign off."""
        while not self._given_up.wait(conf.section(QueueSettings).HEARTBEAT_INTERVAL):
            with self._lock:
                used = list(+self._running)
                if not used and monotonic() - self._last > IDLE:
                    ended = self._end_worker()
                    break
            for number in used:
                self._beat(number)
            self._flush()
        else:
            return
        for source in list(self._sources):
            try:
                source.sign_off(worker=ended)
            except RedisFailure as error:
                logger.debug("Queue %a: could not sign off: %s", source.name, error)

    def _end_worker(self) -> str:
        """End the heartbeats of this worker, and return its id. Jobs from now on are another worker's."""
        ended, self._worker, self._beats = self._worker, ids.new_worker(), False
        for source in self._sources:
            source.worker = self._worker
        self._suspects.clear()
        return ended

    def _beat(self, number: int) -> None:
        try:
            (reply,) = send_heartbeats([self._sources[number]])
        except RedisFailure as error:
            logger.debug("Heartbeat failed; retrying: %s", error)
            return
        if isinstance(reply, RedisFailure):
            return
        source, unknown = self._sources[number], set(reply.held) - self._held
        lost = unknown & self._suspects.get(number, set())  # their ends could not be recorded, or the server lost that
        if lost:
            logger.warning("Queue %a: %d jobs that no thread runs are ready again.", source.name, len(lost))
            guarded("The return of jobs", partial(source.put_back, sorted(lost)), 0)
        self._suspects[number] = unknown
        for id in reply.cancelled:
            self._runner.cancel((number, id))


_fleet: Fleet | None = None
_lock = Lock()


def current(stops: Callable[[], bool]) -> Fleet:
    """Return the one of this process; ``stops`` returns whether its worker of Celery is asked to stop."""
    global _fleet
    with _lock:
        _fleet = _fleet or Fleet(stops)
        return _fleet


def close() -> None:
    """End it; the next job begins a new one."""
    global _fleet
    ended, _fleet = _fleet, None
    if ended:
        ended.close()


def _forget() -> None:
    """Forget it in a child, which has none of its threads."""
    global _fleet, _lock
    _fleet, _lock = None, Lock()


os.register_at_fork(after_in_child=_forget)
conf.on_change(close)
