"""Starts and stops a worker's loops."""

import logging
import os
import resource
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from math import inf
from pathlib import Path
from queue import Empty
from threading import Event, Thread
from time import monotonic, sleep

from redis_kit.core.errors import RedisFailure
from redis_kit.core.text import counted
from redis_kit.core.values.event_queue import EventQueue
from redis_kit.queues.engine import ids
from redis_kit.queues.engine.claim import version
from redis_kit.queues.engine.feature import Process, features, process_parts
from redis_kit.queues.engine.job import Job
from redis_kit.queues.worker.fetcher import Fetcher, Rotation
from redis_kit.queues.worker.options import Options
from redis_kit.queues.worker.run.attempt import WorkerContext
from redis_kit.queues.worker.run.endings import record_unstoppable
from redis_kit.queues.worker.run.runner import JobRunner
from redis_kit.queues.worker.shared.channel import Channel
from redis_kit.queues.worker.shared.failures import Duties, guarded
from redis_kit.queues.worker.shared.status_board import StatusBoard
from redis_kit.queues.worker.shared.worker_queue import Done, WorkerQueue

logger = logging.getLogger("redis_kit.worker")
SIGN_OF_LIFE = 2.0  # seconds between two
THREAD_PAUSE = 0.5  # seconds until a thread that failed goes on


def resident() -> float:
    """Return how much memory this process has, in MiB; where the system doesn't tell, the most that it ever had."""
    if (size := resident_of("self")) is not None:
        return size
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (2**20 if sys.platform == "darwin" else 2**10)


def resident_of(pid: int | str) -> float | None:
    """Return how much memory another process has, in MiB; None where the system doesn't tell."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    return None


class WorkerProcess:
    """One worker process. ``channel`` brings the supervisor's commands; ``board`` shows the supervisor what it does."""

    def __init__(
        self,
        options: Options,
        *,
        worker: str = "",
        about: str = "",
        channel: Channel | None = None,
        board: StatusBoard | None = None,
    ) -> None:
        self.options, self.worker, self._channel = options, worker or ids.new_worker(), channel
        self._board = board = board or StatusBoard(options.threads)
        about = about or ids.information(queues=options.queues, threads=options.threads)
        make = partial(WorkerQueue, worker=self.worker, about=about, lone_job=options.lone_job)
        self.sources: list[WorkerQueue] = [make(name) for name in options.sources]
        self._level = logging.DEBUG if options.lone_job else logging.INFO  # the supervisor says which job runs alone
        self._recycling = False  # it has run enough jobs or has grown too large, and is to be replaced
        self._events: EventQueue[str] = EventQueue()
        self._stopping = Event()
        self._isolated: dict[str, Event] = {}  # set when the job of this claim has ended, in a process of its own
        process = Process("worker", self.worker, self.sources, self._stopping, options.burst, self._report)
        self._fetcher = Fetcher(
            self.sources,
            threads=options.threads,
            board=board,
            rotation=Rotation([len(names) for names in options.shards], options.weights),
            on_empty=self.stop if options.burst else None,
        )
        self._context = WorkerContext(
            self.sources,
            board,
            stops=self._stops,
            parts=process_parts(process),
            isolate=self._isolate if channel and not options.lone_job else None,
        )
        self._runner = JobRunner(self._context, self._fetcher)
        self._duties = [duty for feature in features() for duty in feature.process_duties(process)]
        is_limited = channel and (options.max_tasks or options.max_rss)
        self._run_job = self._run_within_limits if is_limited else self._runner.process
        self._working = set(range(options.threads))  # the threads that have not ended

    def run(self) -> int:
        """Work until stopped, or with ``burst`` until no job is ready. Return 1 if the supervisor is gone, else 0."""
        self._start()
        event = self._wait_for("stop", "now", "gone")
        if event == "gone":
            logger.warning("The supervisor of this process has gone.")
        end = monotonic() + self.options.grace  # counted from here, as the next step may wait for the server
        self._stopping.set()
        for ended in list(self._isolated.values()):
            ended.set()
        self._fetcher.stop()
        if event == "stop":
            event = self._wait_for("ended", "now", "gone", seconds=end - monotonic())
        self._context.given_up.set()
        self._leave()
        return int(event == "gone")

    def stop(self) -> None:
        """Stop claiming and let the jobs end."""
        self._events.put("stop")

    def _work(self, slot: int) -> None:
        """Run one job after the other until the fetcher has no more."""
        try:
            while claimed := self._fetcher.next(slot):
                source, job = claimed
                try:
                    done = self._run_job(slot, source, job)
                    for item in done:
                        self._fetcher.add_done(item)
                    if not done:
                        self._fetcher.wake()
                except BaseException:
                    logger.exception("Job %a: the worker itself failed.", job.id)
        except BaseException:
            self._fetcher.wake(1.0)
            raise
        self._working.discard(slot)
        if not self._working:
            self._events.put("ended")

    def _run_within_limits(self, slot: int, source: int, job: Job) -> list[Done]:
        done = self._runner.process(slot, source, job)
        if not self._recycling and (reason := guarded("The limits of a process", self._reached_limit, "")):
            self._recycling = True
            self._report("recycle", reason)
        if self._recycling:  # each thread sees to it before it takes another job
            self._fetcher.quiet()
        return done

    def _reached_limit(self) -> str:
        """Return in words which limit this process has reached, "" for none."""
        most, size = self.options.max_tasks, self.options.max_rss
        if most and self._board.done >= most:
            return f"it has run {counted(self._board.done, 'job')}"
        return f"it has {used:.0f} MiB" if size and (used := resident()) > size else ""

    def _run_duties(self) -> None:
        """Do what may wait for a database. The supervisor has no time for that."""
        duties = Duties(*self._duties)
        while not self._stopping.wait(max(0.0, duties.next - monotonic())):
            duties.run()

    def _report(self, *words: object) -> None:
        if self._channel:
            self._channel.say(*words)

    def _stops(self) -> bool:
        return self._stopping.is_set() or self._recycling

    def _start(self) -> None:
        if self.options.burst and not self.options.lone_job:
            for duty in self._duties:  # before a thread finds nothing to do, and the worker ends
                guarded(type(duty).__name__, duty.run, None)
        for slot in range(self.options.threads):
            start_thread(f"job-{slot}", partial(self._work, slot))
        threads: dict[str, Callable[[], object]] = {
            "watch": self._fetcher.watch,
            "deadlines": self._context.deadlines.run,
            **{name: part.run for name, part in self._context.parts.items() if part.run},
        }
        if self._duties and not self.options.burst:
            threads["duties"] = self._run_duties
        if self._channel:
            threads["commands"] = partial(self._take_commands, self._channel)
        if not self.options.burst:
            for number, source in enumerate(self.sources):
                threads[f"listener-{source.name}"] = partial(self._fetcher.listen, number, self._stopping)
        for name, target in threads.items():
            start_thread(name, target)
        if self._channel:
            self._channel.say("up")
        queues, count = ", ".join(self.options.queues), counted(self.options.threads, "thread")
        logger.log(self._level, "Worker %s works on %s with %s.", self.worker, queues, count)

    def _take_commands(self, channel: Channel) -> None:
        for word, *arguments in channel.read():
            if word == "wake":
                self._fetcher.wake(float(arguments[0]))
            elif word == "cancel":
                self._runner.cancel((int(arguments[0]), arguments[1]))  # the end of its attempt is in the log
            elif word == "ended":
                if ended := self._isolated.get(arguments[0]):
                    ended.set()
            elif word == "held":
                self._fetcher.reconcile(int(arguments[0]), arguments[1:])
            elif word == "quiet":
                self._fetcher.quiet()
            elif word == "resume":
                if not self._recycling:
                    self._fetcher.resume()
            else:
                self._events.put(word)
        self._events.put("gone")

    def _isolate(self, number: int, job: Job) -> None:
        """Have the supervisor run a job in a process of its own, and wait for its end or until the worker stops."""
        claim = f"{job.token}/{job.id}"
        ended = self._isolated[claim] = Event()
        message = ("alone", number, job.id, job.token, version(job))
        if self._channel and not self._stopping.is_set() and self._channel.say(*message):
            ended.wait()
        del self._isolated[claim]

    def _wait_for(self, *events: str, seconds: float | None = None) -> str:
        deadline = inf if seconds is None else monotonic() + seconds
        while True:
            self._board.note_alive()
            try:
                event = self._events.get(timeout=max(0.0, min(deadline - monotonic(), SIGN_OF_LIFE)))
            except Empty:
                if monotonic() >= deadline:
                    return ""
                continue
            if event in events:
                return event

    def _end_cancelled(self) -> None:
        """Record the end of cancelled jobs that did not stop: they would run again elsewhere."""
        for item in self._board.running():
            current = self._context.running.get((item.source, item.id))
            if current and current.cancelled:
                end = partial(record_unstoppable, self.sources[item.source], item, cancelled=True)
                guarded("The end of a cancelled job", end, None)

    def _leave(self) -> None:
        self._context.deadlines.stop()
        unsent = self._fetcher.flush_all()
        self._runner.close()
        self._end_cancelled()
        for number, source in enumerate(self.sources):
            if number in unsent:  # its jobs that are done would run again; the supervisor sends what is on the board
                logger.warning("Queue %a: could not sign off: outcomes are to be sent first.", source.name)
                continue
            try:
                if count := source.sign_off(worker=self.worker):
                    logger.warning("Queue %a: returned %s.", source.name, counted(count, "job"))
                if not self.options.burst:
                    source.pass_on()  # the last wake-up may have gone to the listener here, which ends with the process
            except RedisFailure as error:
                logger.warning("Queue %a: could not sign off: %s", source.name, error)
        logger.log(self._level, "Worker %s has stopped.", self.worker)


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
            sleep(THREAD_PAUSE)
