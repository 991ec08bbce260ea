"""One worker process as its supervisor sees it: the fork that starts it, and what is cleaned up after its death."""

import contextlib
import logging
import operator
import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf
from time import monotonic
from typing import Any, NamedTuple, NoReturn, TypeVar, cast

from django.db import connections

from redis_kit.core.awaitables import LocalCall
from redis_kit.core.client.pools import SPARE as OTHERS
from redis_kit.core.connections import provide
from redis_kit.core.errors import RedisFailure
from redis_kit.core.flow import Flow, Step
from redis_kit.core.signals import send_safely
from redis_kit.core.text import counted
from redis_kit.queues import signals
from redis_kit.queues.engine import calls, claim, ids
from redis_kit.queues.engine.done import Ack
from redis_kit.queues.engine.feature import death_hooks
from redis_kit.queues.engine.liveness import Poison, reap
from redis_kit.queues.worker.options import LoneJob, Options
from redis_kit.queues.worker.process import WorkerProcess, resident_of
from redis_kit.queues.worker.run.endings import record_unstoppable
from redis_kit.queues.worker.shared import failpoints
from redis_kit.queues.worker.shared.channel import Channel, pair
from redis_kit.queues.worker.shared.failures import UNAVAILABLE, pause
from redis_kit.queues.worker.shared.status_board import Running, StatusBoard
from redis_kit.queues.worker.shared.worker_queue import PAGE, WorkerQueue
from redis_kit.queues.worker.supervisor.os_signals import held_back

Result = TypeVar("Result")
logger = logging.getLogger("redis_kit.worker")
SUSPECTS = 10_000  # of one child and queue, at most
FAILED = 70  # exit code of a child whose own code failed, not a job's
UNRESPONSIVE = 30.0  # seconds without a sign of life from which on that is reported
LATE = 1.0  # seconds until the second look: a claim that was under way may have arrived after the death
STAY = "Queue %a: jobs of a dead child stay until its lease expires: %s"
LOST = "Queue %a: an outcome of a dead child was lost; the job runs again: %s"
HELPER_TIMEOUT = 30  # seconds
SPARE = 0.4  # seconds beyond its grace after which a child that was told to end is killed


def named(ids: Sequence[str]) -> str:
    """Return the ids of jobs, the first five of them: ``'a', 'b' and 3 more``; "" if none has a name."""
    shown = [ascii(id) for id in ids if id][:5]
    more = len(ids) - len(shown)
    return f"{', '.join(shown)}{f' and {more} more' if more else ''}" if shown else ""


class _Within(NamedTuple):
    """A step that is made by a function."""

    call: Callable[[Callable[[], Any]], Any]
    step: Step

    def run(self, client: Any) -> Any:
        return self.call(partial(self.step.run, client))


def _each_within(call: Callable[[Callable[[], Any]], Any], steps: Flow[Result]) -> Flow[Result]:
    """Return a flow whose calls to the server are made by a function. Receivers of signals are called without it."""
    reply: Any = None
    error: BaseException | None = None
    try:
        while True:
            step = steps.throw(error) if error else steps.send(reply)
            reply = error = None
            try:
                reply = yield step if isinstance(step, LocalCall) else cast(Step, _Within(call, step))
            except BaseException as raised:
                error = raised
    except StopIteration as stop:
        return cast(Result, stop.value)


class SupervisedQueue(WorkerQueue):
    """A queue of a supervisor or of one of its children, as the supervisor sees it.

    ``call`` makes each call to the server, and may end it early. For a child, it stores what the last heartbeats said:
    the jobs to cancel, and since when the server knows the worker, in ms, with the time at which that was asked.
    """

    def __init__(
        self, name: str, *, worker: str, about: str, call: Callable[[Callable[[], Any]], Any] = operator.call
    ) -> None:
        super().__init__(name, worker=worker, about=about)
        self._call = call
        self.cancelled: list[str] = []
        self.registered: tuple[int, float] | None = None
        self._unknown_before: set[bytes] = set()  # by the board, of the last pass over all running jobs
        self._unknown: set[bytes] = set()  # and of this one

    def run_flow(self, steps: Flow[Result], **answers: Any) -> Result | Any:
        """See Primitive."""
        return super().run_flow(_each_within(self._call, steps), **answers)

    def suspects(self, page: Sequence[bytes], running: set[bytes]) -> list[bytes]:
        """Return the jobs of a page that neither this pass nor the one before found among those that run."""
        unknown = [member for member in page if member not in running]
        if len(self._unknown) < SUSPECTS:
            self._unknown.update(unknown)
        suspects = [member for member in unknown if member in self._unknown_before]
        self.after = page[-1] if len(page) == PAGE else b""
        if not self.after:
            self._unknown_before, self._unknown = self._unknown, set()
        return suspects


@dataclass(eq=False)
class Child:
    """A child as its supervisor sees it. Times are on the monotonic clock."""

    pid: int
    worker: str
    channel: Channel
    board: StatusBoard
    sources: list[SupervisedQueue]
    born: float = field(default_factory=monotonic)
    recycling: bool = False
    stopping: bool = False
    returned_jobs: bool = False  # it was told not to finish its jobs
    kill_at: float = inf
    killed_late: bool = False  # it was killed because it did not end in time
    overdue: list[Running] = field(default_factory=list)  # the jobs it was killed for
    about: Callable[..., str] = ids.information
    lone_job: LoneJob | None = None  # the only one that it runs
    on_reaped: Callable[[], object] | None = None  # called when its jobs are cleaned up
    state: str = ""  # as of the last report, like the next three
    memory: float = 0.0  # MiB
    unresponsive: int = 0  # for how many seconds it has given no sign of life, from 30 on
    running: set[bytes] = field(default_factory=set)

    def report(self, *, quiet: bool) -> None:
        """Have the next heartbeat report the state, the memory if that changed by more than 5 %, and silence."""
        self.state = "stopping" if self.stopping else "quiet" if quiet or self.recycling else "working"
        self.running = self.members()
        self._note_silence(int(self.board.silence))
        size = resident_of(self.pid) or 0.0
        if abs(size - self.memory) > self.memory * 0.05:
            self.memory = size
        numbers = {"memory": round(self.memory), "unresponsive": self.unresponsive}
        about = self.about(state=self.state, **{name: number for name, number in numbers.items() if number})
        for source in self.sources:
            source.about = about

    def _note_silence(self, seconds: int) -> None:
        before, self.unresponsive = self.unresponsive, seconds if seconds >= UNRESPONSIVE else 0
        if self.unresponsive and not before:
            text = "Child %d, worker %s, has not responded for %d s: it was stopped, or a job holds the interpreter%s."
            jobs = named([job.id for job in self.board.running()])
            logger.warning(text, self.pid, self.worker, seconds, f"; it runs {jobs}" if jobs else "")
        elif before and not self.unresponsive:
            logger.warning("Child %d, worker %s, responds again.", self.pid, self.worker)

    def members(self) -> set[bytes]:
        """Return the server's names for the jobs that run now."""
        return {job.member() for job in self.board.running()}

    def wake(self, seconds: float = 0.0) -> None:
        """Have it ask for jobs after this time at the latest."""
        self.channel.say("wake", f"{seconds:.3f}")

    def reconcile(self, number: int, held: list[bytes]) -> None:
        """Ask the child about jobs that the server holds as running for it and its board does not show."""
        if unknown := self.sources[number].suspects(held, self.members()):
            self.channel.say("held", number, *(member.decode("utf-8", "surrogateescape") for member in unknown))

    def stop(self, until: float) -> None:
        """Tell it to finish its jobs, and to have ended by then."""
        if not self.stopping:
            self.stopping = True
            self.kill_at = until + SPARE
            self.channel.say("stop")

    def stop_now(self) -> None:
        """Tell it to return its jobs to their queues at once."""
        if not self.returned_jobs:
            self.stopping = self.returned_jobs = True
            self.kill_at = monotonic() + SPARE
            self.channel.say("now")

    def recycle(self) -> None:
        """Make it quiet; it is stopped when it runs no job."""
        self.recycling = True
        self.channel.say("quiet")

    def enforce_deadlines(self) -> bool:
        """Kill it if one of its jobs ran for too long, or if it should have ended; return whether this did so.

        Safe in a signal handler.
        """
        now = monotonic()
        if self.overdue or self.killed_late:
            return False
        self.overdue = [job for job in self.board.running() if job.deadline is not None and job.deadline <= now]
        self.killed_late = not self.overdue and self.kill_at <= now
        if not self.overdue and not self.killed_late:
            return False
        self.signal(signal.SIGKILL)
        return True

    def signal(self, number: int) -> None:
        """Send it a signal."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def ended(self) -> int | None:
        """Return its exit code, that of a signal negative; None while it lives."""
        try:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:  # somebody else in this process waited for it
            return FAILED
        return os.waitstatus_to_exitcode(status) if pid else None

    def describe_end(self, code: int) -> str:
        """Return in words how it ended, with this exit code."""
        if code == -signal.SIGKILL and self.overdue:
            names, several = named([job.id for job in self.overdue]), len(self.overdue) > 1
            jobs = f"job{'s' if several else ''} {names}" if names else counted(len(self.overdue), "job")
            return f"was killed by its supervisor: {jobs} ran beyond {'their' if several else 'its'} timeout"
        if code == -signal.SIGKILL and self.killed_late:
            return "was killed by its supervisor: it did not end in time"
        jobs = named([job.id for job in self.board.running()])
        ran = f"; it ran {jobs}" if jobs else ""
        try:
            return f"ended by {signal.Signals(-code).name if code < 0 else f'exit code {code}'}{ran}"
        except ValueError:  # a real-time signal has no name
            return f"ended by signal {-code}{ran}"

    def close(self) -> None:
        """Close the channel and the board in this process."""
        self.channel.close()
        self.board.close()


def fork(
    options: Options, *, supervisor: str, in_child: Callable[[], None], call: Callable[[Callable[[], Any]], Any]
) -> Child:
    """Fork a child that is a worker of its own. ``in_child`` frees it of what only its parent needs.

    ``call`` makes the parent's calls to the server.
    """
    worker, (parent_end, child_end), board = ids.new_worker(), pair(), StatusBoard(options.threads)
    parent = os.getpid()

    def about(pid: int, **more: object) -> str:
        details: dict[str, object] = {"pid": pid, "queues": options.queues, "threads": options.threads}
        if options.lone_job:
            details["alone"] = True
        return ids.information(**details, supervisor=supervisor, supervisor_pid=parent, **more)

    def free() -> None:
        failpoints.reach("forked")
        parent_end.close()
        in_child()

    pid = _fork_process(free)
    if not pid:
        _run_child(options, worker, about(os.getpid()), child_end, board)
    child_end.close()
    sources = [SupervisedQueue(name, worker=worker, about=about(pid), call=call) for name in options.sources]
    return Child(pid, worker, parent_end, board, sources, about=partial(about, pid), lone_job=options.lone_job)


def _run_child(options: Options, worker: str, about: str, channel: Channel, board: StatusBoard) -> NoReturn:
    code = FAILED
    provide(options.threads + len(options.sources) + OTHERS)
    try:
        details = {"worker": worker, "queues": options.queues}
        send_safely(signals.worker_started, WorkerProcess, **details)
        code = WorkerProcess(options, worker=worker, about=about, channel=channel, board=board).run()
        send_safely(signals.worker_stopping, WorkerProcess, **details)
    except BaseException:
        logger.exception("Worker %s failed.", worker)
    finally:
        _exit(code)


class Helper:
    """A process that does what may wait for a database, one thing at a time. ``in_child`` is that of fork()."""

    def __init__(self, in_child: Callable[[], None]) -> None:
        self._in_child = in_child
        self._pid = 0

    def start(self, work: Callable[[], None]) -> None:
        """Run a function in a process of its own, unless one is at work. After 30 s the system ends it."""
        if self._pid:
            return
        self._pid = _fork_process(self._in_child)
        if not self._pid:
            try:
                signal.alarm(HELPER_TIMEOUT)
                work()
            finally:
                _exit(0)

    def reap(self) -> None:
        """Take note of its end."""
        if self._pid:
            with contextlib.suppress(ChildProcessError):
                if not os.waitpid(self._pid, os.WNOHANG)[0]:
                    return
            self._pid = 0

    def close(self) -> None:
        """End it."""
        if self._pid:
            with contextlib.suppress(OSError):
                os.kill(self._pid, signal.SIGKILL)
                os.waitpid(self._pid, 0)
            self._pid = 0


def _fork_process(free: Callable[[], None]) -> int:
    """Fork; return the pid, 0 in the child. ``free`` frees that of what its parent needs, before signals reach it."""
    connections.close_all()  # a receiver of signals may have opened one
    sys.stdout.flush()
    sys.stderr.flush()
    with held_back():
        pid = os.fork()
        if not pid:
            try:
                free()
            except BaseException:
                os._exit(FAILED)
    return pid


def _exit(code: int) -> NoReturn:
    """End a child. What called the supervisor is the parent's business, its exit handlers too."""
    with contextlib.suppress(BaseException):
        connections.close_all()
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


@dataclass(eq=False)
class DeadChild:
    """A dead child, the jobs that it had done, and those that it ran: ``counts`` says whether these count a crash.

    ``at`` is when to clean up, and ``left`` has the queues for which that is still to be done.
    """

    child: Child
    done: list[Ack] = field(default_factory=list)
    running: list[Running] = field(default_factory=list)
    counts: bool = False
    again: bool = False
    at: float = 0.0
    tries: int = 0

    def __post_init__(self) -> None:
        self.left = list(enumerate(self.child.sources))


class Reaper:
    """Cleans up after dead children. If this process dies too, other workers do it when the leases end."""

    def __init__(self) -> None:
        self._dead_children: list[DeadChild] = []

    def add(self, child: Child, *, crashed: bool) -> None:
        """Take over from a child. After a crash its jobs count one, also if it was killed because of another job."""
        counts = crashed and not child.killed_late
        self._dead_children.append(DeadChild(child, _done(child), child.board.running(), counts, again=crashed))

    @property
    def due(self) -> float:
        """Return when there is something to do next, on the monotonic clock; inf if no child has died."""
        return min((dead_child.at for dead_child in self._dead_children), default=inf)

    @property
    def owing(self) -> bool:
        """Tell whether the server has yet to answer for a dead child. The second look does not count."""
        return any(dead_child.tries or not dead_child.at for dead_child in self._dead_children)

    @property
    def holding(self) -> bool:
        """Tell whether a dead child ran jobs that are not cleaned up yet."""
        return any(dead_child.running or dead_child.done for dead_child in self._dead_children)

    def run(self) -> None:
        """Do what is due."""
        now = monotonic()
        for dead_child in [item for item in self._dead_children if item.at <= now]:
            try:
                self._clean_up(dead_child)
            except UNAVAILABLE:
                dead_child.at = monotonic() + pause(dead_child.tries)
                dead_child.tries += 1
                return  # it would not answer for the others either

    def _clean_up(self, dead_child: DeadChild) -> None:
        while dead_child.left:
            index, source = dead_child.left[0]
            _try_step(source, STAY, partial(_reap, dead_child, index, source))
            dead_child.left.pop(0)
        failpoints.reach("reaped")
        self._dead_children.remove(dead_child)
        child = dead_child.child
        if child.on_reaped:
            child.on_reaped()
        if dead_child.again:
            self._dead_children.append(DeadChild(child, at=monotonic() + LATE))


def _done(child: Child) -> list[Ack]:
    acks = []
    for entry in child.board.noted():
        try:
            acks.append(Ack.unpack(entry))
        except ValueError:
            logger.exception("Worker %s: an outcome on its board can't be read.", child.worker)
    return acks


def _reap(dead_child: DeadChild, index: int, source: SupervisedQueue) -> None:
    child = dead_child.child
    done = [item for item in dead_child.done if item.source == index]
    _try_step(source, LOST, lambda: source.run_flow(claim.acknowledge(source, child.worker, done)))
    failpoints.reach("outcomes_sent")
    ended = {item.token + b"/" + item.id for item in done}
    overdue = {item.member() for item in child.overdue}
    running = [item for item in dead_child.running if item.source == index]
    for item in running:
        cancelled = item.id in source.cancelled
        record = partial(record_unstoppable, source, item, cancelled=cancelled)
        if (cancelled or item.member() in overdue) and _try_step(source, LOST, record):
            ended.add(item.member())
    started = [item.id for item in running if dead_child.counts and item.member() not in overdue]
    jobs = {(child.sources[item.source].queue_name, item.id) for item in (*dead_child.running, *child.overdue)}
    beside = sorted(jobs) if len(jobs) > 1 else []  # one was alone
    step = calls.reap(source.key(""), child.worker, started, beside)
    count, dead = source.run_flow(reap(source, step, calls.TAKEN))
    if count:
        taken = "1 job was" if count == 1 else f"{count} jobs were"
        names = named([item.id for item in running if item.member() not in ended])
        text = f"{taken} taken from worker {child.worker}, which died{names and f'; it ran {names}'}"
        logger.warning("Queue %a: %s.", source.name, text)
    for job in dead:
        announce_death(source, job)


def _try_step(source: SupervisedQueue, text: str, step: Callable[[], Any]) -> bool:
    """Take a step, and say whether it succeeded; its error is logged with this text."""
    try:
        step()
    except UNAVAILABLE:
        raise
    except Exception as error:
        unforeseen = None if isinstance(error, RedisFailure) else error
        logger.log(logging.ERROR, text, source.name, error, exc_info=unforeseen)
        return False
    return True


def announce_death(source: WorkerQueue, job: Poison) -> None:
    """Announce that a job is dead as its processes died, and call the hooks of features."""
    task = f" ({job.task})" if job.task else ""
    logger.error("Job %a of queue %a%s is dead: %a", job.id, source.name, task, job.reason)
    send_safely(signals.job_dead, Child, queue=source.queue_name, id=job.id, reason="poison")
    for hook in death_hooks(source, job.head):
        hook(job.reason)
