"""The process above the workers: it forks them, sends their heartbeats, and cleans up after those that die.

It has one thread, so that it can fork at any time, and runs no task. One loop waits for signals, for its children, and
for the next of its duties.
"""

import gc
import logging
import signal
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from math import inf
from pathlib import Path
from time import monotonic, sleep
from typing import Any, TypeVar

from redis_kit.core import conf, connections
from redis_kit.core.errors import RedisFailure
from redis_kit.core.flow import single
from redis_kit.core.logs.rate_limit import LogRateLimit
from redis_kit.core.steps import Batch, writable
from redis_kit.core.text import counted
from redis_kit.queues.engine import calls, ids
from redis_kit.queues.engine.feature import Duty, Listener, features
from redis_kit.queues.queue import Queue
from redis_kit.queues.settings import QueueSettings
from redis_kit.queues.worker.options import LoneJob, Options
from redis_kit.queues.worker.shared import failpoints
from redis_kit.queues.worker.shared.failures import UNAVAILABLE, Duties, Outage
from redis_kit.queues.worker.shared.worker_queue import PatientQueue
from redis_kit.queues.worker.supervisor import autoreload, os_signals
from redis_kit.queues.worker.supervisor.autoreload import FileWatch
from redis_kit.queues.worker.supervisor.child import SPARE, Child, Helper, Reaper, SupervisedQueue, fork, named
from redis_kit.queues.worker.supervisor.heartbeat import Heartbeat
from redis_kit.queues.worker.supervisor.os_signals import Interrupted, Signals
from redis_kit.queues.worker.supervisor.probes import Probes

logger = logging.getLogger("redis_kit.worker")
SWEEP_INTERVAL = 15.0  # seconds between two looks at each queue


class Sweep:
    """Makes jobs ready that no state leads to, as after a damaged key was deleted. It looks at 200 of each queue.

    ``report`` is called with the errors of queues after each look. One round trip every 15 s.
    """

    def __init__(self, queues: Sequence[Queue], report: Callable[[Mapping[str, RedisFailure]], object]) -> None:
        self.due = 0.0
        self._queues, self._report = queues, report

    def run(self) -> None:
        """Look at some jobs of each queue, chosen by chance."""
        steps = [calls.sweep(queue.key("")) for queue in self._queues]
        replies = self._queues[0].run_flow(single(Batch(steps, lenient=True)))
        self.due = monotonic() + SWEEP_INTERVAL
        errors: dict[str, RedisFailure] = {}
        for queue, reply in zip(self._queues, replies, strict=True):
            if isinstance(reply, RedisFailure):
                errors[queue.name] = reply
            elif reply:
                jobs = named([id.decode("utf-8", "backslashreplace") for id in reply])
                text = "Queue %a: %s in no state made ready: %s."
                logger.error(text, queue.name, counted(len(reply), "job"), jobs)
        self._report(errors)


Answer = TypeVar("Answer")
LONGEST_WAIT = 1.0  # seconds of one wait
AGAIN = 0.5  # seconds after a turn that failed
STACKS_INTERVAL = 0.05  # seconds in which a child writes its stacks
STOPPING_TICK = 0.1  # seconds between two looks at the clock when the end is near
LAST = 1.4  # seconds that a stopped supervisor has to return the jobs of killed children, also on a busy machine
EARLY_DEATH = 1.0  # seconds of life
QUIET_PERIOD = 10.0  # seconds without an early death after which they are forgotten
FIRST_DELAY, LONGEST_DELAY = 0.1, 5.0  # seconds


class RespawnBackoff:
    """Says when the next child may be forked: at once, unless the last ones died within a second of their start."""

    def __init__(self) -> None:
        self._deaths = 0
        self._last = 0.0
        self.until = 0.0

    def note(self, lifetime: float) -> None:
        """Note a death."""
        now = monotonic()
        if now - self._last > QUIET_PERIOD:
            self._deaths = 0
        if lifetime <= EARLY_DEATH:
            self._deaths += 1
            self._last = now
            if self._deaths > 1:
                self.until = now + min(LONGEST_DELAY, FIRST_DELAY * 2 ** (self._deaths - 2))

    def over(self) -> bool:
        """Say whether a child may be forked now."""
        return monotonic() >= self.until


class Supervisor:
    """Keeps ``options.processes`` children at work until it is told to stop, or, with ``burst``, until all are done."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.id = ids.new_worker()
        self.children: list[Child] = []
        self.quiet = False
        self._wanted = options.processes
        self.stopping = self._returning_jobs = self._reaping = self._restarting = False
        self._grace_end = self._end = inf  # when jobs, and this process, are to have ended
        self._log_limit = LogRateLimit()
        self._outage = Outage()
        self._signals = Signals(self._enforce_deadlines)
        self.queues = [
            SupervisedQueue(name, worker=self.id, about="", call=self.call_server) for name in options.sources
        ]
        # Those that are to get a process of their own, each with the child that has claimed it.
        self._lone_jobs: deque[tuple[Child, LoneJob]] = deque()
        self._backoff = RespawnBackoff()
        self._lone_backoff = RespawnBackoff()
        self._helper = Helper(self._release_resources)
        self.start_helper = self._helper.start  # see Supervision
        self._reaper = Reaper()
        reports = options.health_port is not None or options.metrics_port is not None
        self._heartbeat = Heartbeat(self, reports=reports)
        self._probes = Probes(options, self._heartbeat)
        duties: list[Duty] = [self._heartbeat, self._reaper, Sweep(self.queues, self._heartbeat.note_swept)]
        for feature in features():
            duties += feature.duties(self)
        self._heartbeat.listeners = [duty for duty in duties if isinstance(duty, Listener)]
        if options.reload:
            duties.append(FileWatch(self._restart))
        self._duties = Duties(*duties)

    def run(self) -> int:
        """Supervise; return the exit code. With ``reload`` it may become a new process instead."""
        connections.client(profile="worker")  # an embedded server is to be this process's own, not a child's
        gc.freeze()  # children share more of this memory, and this process's own end takes 0.03 s and not 0.3
        logger.info("Supervisor %s runs %s.", self.id, f"{self._wanted} process{'' if self._wanted == 1 else 'es'}")
        with self._signals:
            while (self.children or self._wanted) and monotonic() < self._end:
                self._run_turn()
            for child in self.children:
                child.signal(signal.SIGKILL)
            with suppress(Interrupted):
                self._reaper.run()  # the last children may have ended too soon after its last run
            if not (self.children or self._restarting or self._reaper.owing):
                with suppress(Interrupted):
                    self._heartbeat.forget_unused()
            self._helper.close()
            self._probes.close()
        self._restarting = self._restarting and not self._signals.stopped
        self._log_end()
        if self._restarting:
            autoreload.restart()
        return 0

    def _run_turn(self) -> None:
        failed = False
        for step in (
            self._handle_signals,  # those that came while the worker was loading, before the first fork
            self._fork_missing,
            self._wait,
            self._handle_signals,
            self._stop_children,
            self._read_channels,
            self._fork_lone_jobs,
            self._reap_children,
            self._duties.run,
            self._answer_probes,  # in an outage a duty takes seconds
        ):
            try:
                step()
            except Interrupted:
                return  # a signal to stop comes first, or this is the end
            except Exception:  # no memory for a fork, no descriptors: all that may pass, and the other steps are done
                failed = True
                self._log_limit.log(logger.exception, step.__qualname__, "The supervisor failed; it continues.")
        if failed:
            sleep(AGAIN)

    def call_server(self, call: Callable[[], Answer]) -> Answer:
        """Make a call to the server, which a signal to stop ends early, and log the begin and end of an outage."""
        try:
            answer = self._signals.call(call)
            # A flow without a step succeeds meanwhile, and on a replica one that only reads.
            if self._outage.lasts and not self._signals.call(self._all_take_writes):
                return answer  # of another node of a Cluster
        except RedisFailure as error:
            self._outage.say(error if isinstance(error, UNAVAILABLE) else None)
            raise
        self._outage.say(None)
        return answer

    def _all_take_writes(self) -> bool:
        """Return whether the servers of all queues are available for writes. Raises RedisUnavailable if none is."""
        queues = [PatientQueue(name) for name in self.options.queues]
        steps = [writable(queue.key("ready")) for queue in queues]
        replies = queues[0].run_flow(single(Batch(steps, lenient=True)))
        return not any(isinstance(reply, UNAVAILABLE) for reply in replies)

    def _log_end(self) -> None:
        # An operator who stopped it waits for this line; the end of a burst is expected.
        level = logging.WARNING if self.stopping and not self._restarting else logging.INFO
        if not self.children and not self._reaper.owing:
            logger.log(level, "Stopped.")
        elif self._heartbeat.reached or self._reaper.holding or any(child.board.running() for child in self.children):
            text = "Stopped without an answer from Redis. Other workers run its jobs %g s after its last heartbeat."
            logger.log(level, text, conf.section(QueueSettings).WORKER_TIMEOUT)
        else:
            logger.log(level, "Stopped without an answer from Redis. It held no jobs.")

    def _fork(self, options: Options) -> Child:
        child = fork(options, supervisor=self.id, in_child=self._release_resources, call=self.call_server)
        self.children.append(child)
        return child

    def _fork_missing(self) -> None:
        working = sum(not (child.recycling or child.lone_job) for child in self.children)
        while working < self._wanted and not self.quiet and self._backoff.over():
            self._fork(self.options)
            self._heartbeat.due = 0.0
            working += 1

    def _fork_lone_jobs(self) -> None:
        """Fork a child for each job that is to run alone, while the child lives that has claimed it."""
        while self._lone_jobs and not self.stopping and self._lone_backoff.over():
            holder, job = self._lone_jobs[0]
            if holder in self.children:
                child = self._fork(self.options.alone(job))
                child.on_reaped = partial(holder.channel.say, "ended", f"{job.token}/{job.id}")
                logger.info("Job %a of queue %a runs alone in child %d.", job.id, job.source, child.pid)
            self._lone_jobs.popleft()

    def _release_resources(self) -> None:
        """Free a child of what only its parent needs."""
        self._signals.forget()
        self._probes.close()
        for child in self.children:
            child.close()

    def _wait(self) -> None:
        """Wait for a signal, a child, a request, or the next duty."""
        now = monotonic()
        forks_at = [at for at in (self._backoff.until, self._lone_backoff.until) if at > now]
        wait = min(now + LONGEST_WAIT, self._duties.next, *forks_at) - now
        channels = [child.channel for child in self.children if not child.channel.ended]
        watched: list[Any] = [self._signals, *channels, *self._probes.sockets()]
        self._probes.serve(os_signals.readable(watched, wait))

    def _handle_signals(self) -> None:
        for number in self._signals.taken():
            if number in os_signals.STOP:
                self._stop(now=self.stopping)
            elif number == os_signals.NOW:
                self._stop(now=True)
            elif number == os_signals.QUIET:
                self._claim_no_more()
            elif number == os_signals.RESUME:
                self._resume()
            elif number == os_signals.STACKS:
                os_signals.dump_stacks()
                for child in self.children:
                    os_signals.announce_stacks(f"child {child.pid}, worker {child.worker}")
                    child.signal(os_signals.STACKS)
                    sleep(STACKS_INTERVAL)  # lines of several would mix

    def execute(self, command: str) -> None:
        """Execute a command that somebody sent to this worker."""
        if command == "stop" and not self.stopping:
            self._stop()
        elif command == "quiet" and not self.quiet:
            self._claim_no_more()
        elif command == "resume":
            self._resume()

    def _stop(self, *, now: bool = False) -> None:
        self.stopping = True
        self._wanted = 0
        self._duties = Duties(self._heartbeat, self._reaper)
        self._returning_jobs = self._returning_jobs or now
        self._grace_end = min(self._grace_end, monotonic() + (0 if now else self.options.grace))
        self._end = self._grace_end + SPARE + LAST
        self._signals.tick_every(STOPPING_TICK)
        count = sum(len(child.board.running()) for child in self.children)
        if now:
            logger.warning("Returning jobs to their queues: %s.", _running(count))
        elif count:
            text = "Stopping: %s, for at most %g s; a second signal returns %s to the queue."
            logger.warning(text, _running(count), self.options.grace, "it" if count == 1 else "them")
        else:
            logger.warning("Stopping: %s.", _running(0))
        self._stop_children()

    def _stop_children(self) -> None:
        for child in self.children if self.stopping else ():
            if self._returning_jobs:
                child.stop_now()
            else:
                child.stop(self._grace_end)

    def _claim_no_more(self) -> None:
        self.quiet = True
        self._heartbeat.due = 0.0  # so that its new state is visible soon
        logger.info("Supervisor %s is quiet: it claims no more jobs.", self.id)
        for child in self.children:
            if not child.lone_job:  # it claims none but that
                child.channel.say("quiet")

    def _resume(self) -> None:
        if self.stopping or not self.quiet:  # systemd sends CONT with each TERM
            return
        self.quiet = False
        self._heartbeat.due = 0.0
        logger.info("Supervisor %s has resumed.", self.id)
        for child in self.children:
            if not child.recycling:
                child.channel.say("resume")

    def _read_channels(self) -> None:
        for child in self.children:
            child.channel.flush()
            for word, *arguments in child.channel.heard():
                if word == "waits":
                    self._probes.note_wait(arguments[0], float(arguments[1]))
                if word == "alone":
                    number, id, token, version = arguments
                    job = LoneJob(child.sources[int(number)].name, id, token, version)
                    self._lone_jobs.append((child, job))
                if word == "recycle" and not child.recycling:
                    text = "Child %d, worker %s, is quiet and will be replaced: %s."
                    logger.info(text, child.pid, child.worker, arguments[0])
                    child.recycle()
            if child.recycling and not child.board.running():
                child.stop(monotonic() + self.options.grace)

    def _enforce_deadlines(self) -> None:
        if not self._reaping:  # a pid that was just waited for may belong to another process
            for child in self.children:
                if child.enforce_deadlines():  # on a busy machine late, and its jobs have to be returned yet
                    self._end = max(self._end, monotonic() + LAST)
        if monotonic() >= self._end:
            self._signals.interrupt()

    def _reap_children(self) -> None:
        self._helper.reap()
        self._reaping = True
        try:
            exit_codes = [(child, code) for child in self.children if (code := child.ended()) is not None]
            ended = [child for child, _ in exit_codes]
            self.children = [child for child in self.children if child not in ended]
        finally:
            self._reaping = False
        for child, code in exit_codes:
            failpoints.reach("child_died")
            self._replace(child, code)

    def _replace(self, child: Child, code: int) -> None:
        """Have the reaper clean up after a child, and note what that means for the next one."""
        # A task may end its process with 0. Only one that was told to, or that has nothing to do, ends in order.
        in_order = child.stopping or ((self.options.burst or child.lone_job) and not child.board.running())
        crashed = bool(code) or not in_order
        if crashed:
            logger.error("Child %d, worker %s, %s.", child.pid, child.worker, child.describe_end(code))
        if child.lone_job:
            if crashed and not child.board.running():
                self._lone_backoff.note(monotonic() - child.born)
        elif not crashed and self.options.burst and not child.recycling:
            self._wanted = max(0, self._wanted - 1)
        elif not child.stopping:
            self._backoff.note(monotonic() - child.born)
        self._probes.note_end(child)
        self._reaper.add(child, crashed=crashed)
        child.close()

    def wake_children(self, queues: set[str]) -> None:
        """See Supervision."""
        for child in self.children if not (self.quiet or self.stopping) else ():
            if not child.recycling and any(source.name in queues for source in child.sources):
                child.wake()

    def _answer_probes(self) -> None:
        self._probes.serve(os_signals.readable(self._probes.sockets(), 0))

    def _restart(self, path: Path) -> None:
        if not self.stopping:
            logger.warning("%s has changed; the worker finishes its jobs and starts again.", path)
            self._restarting = True
            self._stop()


def _running(number: int) -> str:
    """Return how many jobs run, in words."""
    return f"{counted(number, 'job')} {'is' if number == 1 else 'are'} running" if number else "no job is running"
