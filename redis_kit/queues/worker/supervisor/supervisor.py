"""The process above the workers: it forks them, sends their heartbeats, and cleans up after those that die.

It has one thread, so that it can fork at any time, and runs no task. One loop waits for signals, for its children, and
for the time of the next heartbeat.
"""

import gc
import logging
import signal
from collections import deque
from contextlib import suppress
from functools import partial
from math import inf
from time import monotonic, sleep
from typing import Any

from redis_kit.core import conf, connections
from redis_kit.core.logs.rate_limit import LogRateLimit
from redis_kit.queues.jobs import ids
from redis_kit.queues.settings import QueueSettings
from redis_kit.queues.worker.options import LoneJob, Options
from redis_kit.queues.worker.shared import failpoints
from redis_kit.queues.worker.shared.logs import counted, running
from redis_kit.queues.worker.shared.reconnect import Outage
from redis_kit.queues.worker.supervisor import autoreload, os_signals
from redis_kit.queues.worker.supervisor.child import SPARE, Child, fork
from redis_kit.queues.worker.supervisor.heartbeat import Heartbeat
from redis_kit.queues.worker.supervisor.os_signals import Interrupted, Signals
from redis_kit.queues.worker.supervisor.probes import Probes
from redis_kit.queues.worker.supervisor.reaper import Reaper
from redis_kit.queues.worker.supervisor.scheduler import Scheduler

logger = logging.getLogger("redis_kit.worker")
LONGEST = 1.0  # seconds of one wait
AGAIN = 0.5  # seconds after a turn that failed
MOMENT = 0.05  # seconds in which a child writes its stacks
HASTE = 0.1  # seconds between two looks at the clock when the end is near
LAST = 0.4  # seconds that a stopped supervisor has, when all children were killed, to return their jobs


AT_BIRTH = 1.0  # seconds of life
QUIET = 10.0  # seconds without an early death after which they are forgotten
FIRST_DELAY, LONGEST_DELAY = 0.1, 5.0  # seconds


class RespawnBackoff:
    """Says when the next child may be forked: at once, unless the last ones died within a second of their start."""

    def __init__(self) -> None:
        self._deaths = 0
        self._last = 0.0
        self.until = 0.0

    def note(self, lived: float) -> None:
        """Note a death."""
        now = monotonic()
        if now - self._last > QUIET:
            self._deaths = 0
        if lived <= AT_BIRTH:
            self._deaths, self._last = self._deaths + 1, now
            if self._deaths > 1:
                self.until = now + min(LONGEST_DELAY, FIRST_DELAY * 2 ** (self._deaths - 2))

    def over(self) -> bool:
        """Say whether a child may be forked now."""
        return monotonic() >= self.until


class Supervisor:
    """Keeps ``options.processes`` children at work until it is told to stop, or, with ``burst``, until all are done."""

    def __init__(self, options: Options) -> None:
        self.options, self.id = options, ids.new_worker()
        self.children: list[Child] = []
        self._wanted = options.processes
        self._quiet = self._stopping = self._now = self._burying = False
        self._until = self._last = inf  # when jobs, and this process, are to have ended
        self._log_limit = LogRateLimit()
        outage = Outage()
        self._beat = Heartbeat(outage, reports=options.health_port is not None or options.metrics_port is not None)
        self._reaper, self._restraint = Reaper(outage), RespawnBackoff()
        self._lone_jobs: deque[LoneJob] = deque()  # those that are to get a process of their own
        self._lone_restraint = RespawnBackoff()
        self._signals = Signals(self._judge)
        self._scheduler = Scheduler(self.id, options, outage, call=self._signals.call, in_child=self._free_child)
        self._probes = Probes(options, self._beat, lambda: self.children, lambda: not (self._quiet or self._stopping))
        self._files = autoreload.Files() if options.reload else None
        self._restart = False
        self._silent_yet: list[Child] = []  # children that have yet to tell their stacks
        self._dump_at = 0.0

    def run(self) -> int:
        """Supervise; return the exit code. With ``reload`` it may become a new process instead."""
        connections.client(profile="worker")  # an embedded server is to be this process's own, not a child's
        gc.freeze()  # children share more of this memory, and this process's own end takes 0.03 s and not 0.3
        logger.info("Supervisor %s runs %s.", self.id, counted(self._wanted, "process", "processes"))
        with self._signals:
            while (self.children or self._wanted) and monotonic() < self._last:
                self._turn()
            for child in self.children:
                child.signal(signal.SIGKILL)
            if not (self.children or self._restart or self._reaper.owing):
                with suppress(Interrupted):
                    self._beat.forget_unused()
            self._scheduler.close()
            self._probes.close()
            if self._restart and self._files:
                self._restart = autoreload.usable(self._files, self._signals)
        self._restart = self._restart and not self._signals.stopped
        self._say_stopped()
        if self._restart:
            autoreload.restart()
        return 0

    def _turn(self) -> None:
        failed = False
        for step in (
            self._obey,  # signals that came while the worker was loading are obeyed before the first fork
            *(self._fill, self._wait, self._obey, self._tell, self._ask_for_stacks, self._listen, self._isolate),
            *(self._bury, self._reaper.run, self._keep_alive, self._answer, self._scheduler.run, self._look_at_files),
        ):
            try:
                step()
            except Interrupted:
                return  # a signal to stop comes first, or this is the end
            except Exception:  # no memory for a fork, no descriptors: all that may pass, and the other steps are done
                failed = True
                if self._log_limit.allows(step.__qualname__):
                    logger.exception("The supervisor failed; it continues.")
        if failed:
            sleep(AGAIN)

    def _say_stopped(self) -> None:
        # An operator who stopped it waits for this line; the end of a burst is expected.
        level = logging.WARNING if self._stopping and not self._restart else logging.INFO
        if not self.children and not self._reaper.owing:
            logger.log(level, "Stopped.")
        elif self._beat.reached or self._reaper.holding or any(child.board.running() for child in self.children):
            text = "Stopped without an answer from Redis. Other workers run its jobs %g s after its last heartbeat."
            logger.log(level, text, conf.section(QueueSettings).WORKER_TIMEOUT)
        else:
            logger.log(level, "Stopped without an answer from Redis. It held no jobs.")

    def _fill(self) -> None:
        working = sum(not (child.recycling or child.lone_job) for child in self.children)
        while working < self._wanted and not self._quiet and self._restraint.over():
            child = fork(self.options, supervisor=self.id, in_child=self._free_child, signals=self._signals)
            self.children.append(child)
            self._beat.at = 0.0
            working += 1

    def _isolate(self) -> None:
        """Fork a child for each job that is to run alone, while the child lives that has claimed it."""
        while self._lone_jobs and not self._stopping and self._lone_restraint.over():
            job = self._lone_jobs[0]
            if self._holder(job):
                options = self.options.alone(job)
                child = fork(options, supervisor=self.id, in_child=self._free_child, signals=self._signals)
                self.children.append(child)
                logger.info("Job %a of queue %a runs alone in child %d.", job.id, job.source, child.pid)
            self._lone_jobs.popleft()

    def _holder(self, job: LoneJob) -> Child | None:
        worker = job.token.partition("/")[0]
        return next((child for child in self.children if child.worker == worker), None)

    def _end_lone_job(self, job: LoneJob) -> None:
        """Release the thread that waited for the end of a job."""
        if child := self._holder(job):
            child.channel.say("ended", f"{job.token}/{job.id}")

    def _free_child(self) -> None:
        self._signals.forget()
        self._probes.close()
        for child in self.children:
            child.let_go()

    def _wait(self) -> None:
        dump = self._dump_at if self._silent_yet else inf
        forks = self._restraint.until, self._lone_restraint.until
        moments = [dump, self._scheduler.at, self._beat.at, *forks, self._reaper.next()]
        now = monotonic()
        wait = min([LONGEST, *(at - now for at in moments if at is not None and at > now)])
        if min(self._beat.at, self._scheduler.at, dump) <= now:
            wait = 0
        channels = [child.channel for child in self.children if not child.channel.ended]
        watched: list[Any] = [self._signals, *channels, *self._probes.sockets()]
        readable = os_signals.readable(watched, wait)
        self._probes.serve(readable)

    def _obey(self) -> None:
        for number in self._signals.taken():
            if number in os_signals.STOP:
                self._stop(now=self._stopping)
            elif number == os_signals.NOW:
                self._stop(now=True)
            elif number == os_signals.QUIET:
                self._quieten()
            elif number == os_signals.RESUME:
                self._resume()
            elif number == os_signals.STACKS:
                os_signals.dump_stacks()
                self._silent_yet, self._dump_at = list(self.children), monotonic()

    def _ask_for_stacks(self) -> None:
        # One after the other, with a moment for each, or lines of several would mix.
        while self._silent_yet and self._dump_at <= monotonic():
            if (child := self._silent_yet.pop(0)) in self.children:
                os_signals.announce_stacks(f"child {child.pid}, worker {child.worker}")
                child.signal(os_signals.STACKS)
                self._dump_at = monotonic() + MOMENT

    def _stop(self, *, now: bool = False) -> None:
        self._stopping, self._wanted, self._scheduler.at = True, 0, inf
        self._now = self._now or now
        self._until = min(self._until, monotonic() + (0 if now else self.options.grace))
        self._last = self._until + SPARE + LAST
        self._signals.tick_every(HASTE)
        count = sum(len(child.board.running()) for child in self.children)
        if now:
            logger.warning("Returning jobs to their queues: %s.", running(count))
        elif count:
            text = "Stopping: %s, for at most %g s; a second signal returns %s to the queue."
            logger.warning(text, running(count), self.options.grace, "it" if count == 1 else "them")
        else:
            logger.warning("Stopping: %s.", running(0))
        self._tell()

    def _tell(self) -> None:
        for child in self.children if self._stopping else ():
            child.stop_now() if self._now else child.stop(self._until)

    def _quieten(self) -> None:
        self._quiet = True
        self._beat.at = 0.0  # so that its new state is visible soon
        logger.info("Supervisor %s is quiet: it claims no more jobs.", self.id)
        for child in self.children:
            if not child.lone_job:  # it claims none but that
                child.channel.say("quiet")

    def _resume(self) -> None:
        if self._stopping or not self._quiet:  # systemd sends CONT with each TERM
            return
        self._quiet = False
        self._beat.at = 0.0
        logger.info("Supervisor %s has resumed.", self.id)
        for child in self.children:
            if not child.recycling:
                child.channel.say("resume")

    def _listen(self) -> None:
        for child in self.children:
            child.channel.flush()
            for word, *arguments in child.channel.heard():
                if word == "outbox":
                    self._probes.note_outbox(float(arguments[0]))
                if word == "alone":
                    number, id, token, version = arguments
                    self._lone_jobs.append(LoneJob(child.sources[int(number)].name, id, token, version))
                if word == "recycle" and not child.recycling:
                    logger.info("Child %d, worker %s, is quiet and will be replaced.", child.pid, child.worker)
                    child.recycle()
            if child.recycling and not child.board.running():
                child.stop(monotonic() + self.options.grace)

    def _judge(self) -> None:
        if not self._burying:  # a pid that was just waited for may belong to another process
            for child in self.children:
                if child.judge():  # on a busy machine later than planned, and its jobs have to be returned yet
                    self._last = max(self._last, monotonic() + LAST)
        if monotonic() >= self._last:
            self._signals.interrupt()

    def _bury(self) -> None:
        self._burying = True
        try:
            ended = [(child, code) for child in self.children if (code := child.ended()) is not None]
            self.children = [child for child in self.children if all(child is not job for job, _ in ended)]
        finally:
            self._burying = False
        for child, code in ended:
            failpoints.reach("child_died")
            # A task may end its process with 0. Only one that was told to, or that has nothing to do, ends in order.
            in_order = child.stopping or ((self.options.burst or child.lone_job) and not child.board.running())
            crashed = bool(code) or not in_order
            if crashed:
                logger.error("Child %d, worker %s, %s.", child.pid, child.worker, child.how_ended(code))
            job = child.lone_job
            if job:
                if crashed and not child.board.running():
                    self._lone_restraint.note(monotonic() - child.born)
            elif not crashed and self.options.burst and not child.recycling:
                self._wanted = max(0, self._wanted - 1)
            elif not child.stopping:
                self._restraint.note(monotonic() - child.born)
            self._probes.note_end(child)
            self._reaper.add(child, crashed=crashed, then=partial(self._end_lone_job, job) if job else None)
            child.let_go()

    def _keep_alive(self) -> None:
        if monotonic() < self._beat.at:
            return
        for child in self.children:
            child.say_how(quiet=self._quiet, clock_back=self._beat.clock.went_back)
        for command in self._beat.beat(list(self.children)):
            if command == "stop" and not self._stopping:
                self._stop()
            elif command == "quiet" and not self._quiet:
                self._quieten()
            elif command == "work":
                self._resume()

    def _answer(self) -> None:
        """Answer requests between two steps that take seconds each in an outage."""
        self._probes.serve(os_signals.readable(self._probes.sockets(), 0))

    def _look_at_files(self) -> None:
        if self._files and not self._stopping and (path := self._files.changed()):
            logger.warning("%s has changed; the worker finishes its jobs and starts again.", path)
            self._restart = True
            self._stop()
