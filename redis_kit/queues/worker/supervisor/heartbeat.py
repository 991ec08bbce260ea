"""Keeps the children's leases alive, and returns jobs of workers that died elsewhere."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Protocol

from redis_kit.core import conf
from redis_kit.core.errors import AuthenticationFailed, RedisFailure
from redis_kit.core.flow import single
from redis_kit.core.logs.rate_limit import LogRateLimit
from redis_kit.core.steps import Batch
from redis_kit.core.text import counted
from redis_kit.queues.engine import enqueue
from redis_kit.queues.engine.feature import Listener
from redis_kit.queues.engine.liveness import HeartbeatReply
from redis_kit.queues.reports import stats
from redis_kit.queues.settings import QueueSettings
from redis_kit.queues.worker.shared import failpoints
from redis_kit.queues.worker.shared.failures import UNAVAILABLE
from redis_kit.queues.worker.shared.worker_queue import PAGE, WorkerQueue, send_heartbeats
from redis_kit.queues.worker.supervisor.child import Child, SupervisedQueue, announce_death, named

logger = logging.getLogger("redis_kit.worker")
Answer = tuple[Child, int, HeartbeatReply]  # with the number of the queue


@dataclass
class Suspicion:
    """A queue that may have lost its data, the seconds without a heartbeat, and the time on the server in ms.

    ``gone`` is how many jobs run here that the server does not have.
    """

    source: SupervisedQueue
    silent: float = 0.0
    now: int = 0
    gone: int = 0


class DataLoss:
    """Tells a server that has lost its data, as by a restart without persistence, from a worker that was silent.

    In both cases the server knows the worker only since its last call. A server that has lost its data has also lost
    the name of the queue from its list of queues, unless another worker was faster, or running jobs that nobody else
    may have taken: their lease had not ended, or no worker of the queue was there for a whole lease. Each loss is
    warned of once.

    ``unlisted`` takes the queues whose names were missing in the server's list of queues.
    """

    def __init__(self) -> None:
        self._suspicions: dict[str, Suspicion] = {}  # by queue
        self.unlisted: set[str] = set()

    def suspects(self, child: Child, number: int, reply: HeartbeatReply, sent: float) -> bool:
        """Return whether the server may have lost the data of a queue, by the reply to a heartbeat."""
        source = child.sources[number]
        since, before = source.registered or (reply.since, sent)
        source.registered = reply.since, sent
        if since == reply.since:
            return False
        suspicion = self._suspicions.setdefault(source.name, Suspicion(source))
        suspicion.silent, suspicion.now = monotonic() - before, int(reply.now * 1000)
        if not source.after and len(reply.held) < PAGE:  # else it is one page of several
            jobs = {job.member() for job in child.board.running() if job.source == number and job.token}
            suspicion.gone += len((jobs & child.running) - set(reply.held))  # that ran before and after the heartbeat
        return True

    def warn(self) -> None:
        """Warn of the suspected queues that have lost data. No round trip, or one for each queue in doubt."""
        lost = [each for each in self._suspicions.values() if self._is_lost(each)]
        late = [each for each in self._suspicions.values() if each.gone and each not in lost]
        self._suspicions, self.unlisted = {}, set()
        if lost:
            _warn("The server has lost its data, as by a restart without persistence: waiting jobs are gone", lost)
        if late:
            silent = max(each.silent for each in late)
            _warn(f"This worker was silent for {silent:.1f} s, so that others may run its jobs again", late)

    def _is_lost(self, suspicion: Suspicion) -> bool:
        source = suspicion.source
        if source.name in self.unlisted or not suspicion.gone:
            return source.name in self.unlisted
        lease = conf.section(QueueSettings).WORKER_TIMEOUT
        return suspicion.silent < lease or source.served_since() > suspicion.now - lease * 1000


def _warn(text: str, suspicions: Sequence[Suspicion]) -> None:
    gone = sum(each.gone for each in suspicions)
    outcomes = "; their outcomes can't be recorded" if gone else ""
    queues = named([each.source.name for each in suspicions])
    logger.warning("%s. Queues: %s. Jobs that were running here: %d%s.", text, queues, gone, outcomes)


TOLERANCE = 1.0  # seconds; clocks are corrected by less than that all the time
AGAIN = 1.0  # seconds: the longest pause between two tries while the server is unavailable


class Parent(Protocol):
    """The supervisor, as far as its heartbeat and its probes use it."""

    children: list[Child]
    queues: list[SupervisedQueue]  # all that the children work on, shards each for itself
    quiet: bool  # the children are told to claim no jobs
    stopping: bool

    def execute(self, command: str) -> None:
        """Execute a command that somebody sent to this worker: "quiet", "resume" or "stop"."""


class Heartbeat:
    """Sends the heartbeats of all children and queues in one round trip, earlier if another worker's lease ends soon.

    ``due`` is when to send the next one, ``answered`` when the last one was answered, both on the monotonic clock;
    ``reached`` says whether any was. ``waits`` has the seconds that the next job of each queue had waited then: if
    ``reports`` is set, at one more round trip, and ``refused`` why the server refuses writes to a queue. ``error`` is
    that of the last heartbeat, ``broken`` has the errors of queues. ``listeners`` hear the replies for children that
    claim jobs.
    """

    def __init__(self, parent: Parent, *, reports: bool = False) -> None:
        self.parent, self._reports = parent, reports
        self.listeners: Sequence[Listener] = ()
        self.reached = False
        self._noted: dict[str, WorkerQueue] = {}  # queues on the server's list of names
        self.due = 0.0
        self.answered = monotonic()
        self.waits: dict[str, float] = {}
        self.refused: dict[str, str] = {}
        self.error = ""
        self._unanswered: dict[str, RedisFailure] = {}  # errors of queues in the last heartbeat
        self._unswept: dict[str, RedisFailure] = {}  # and in the last sweep
        self._log_limit = LogRateLimit()  # errors come again with each heartbeat
        self._clock = ServerClock()
        self._loss = DataLoss()

    @property
    def broken(self) -> dict[str, RedisFailure]:
        """Return the errors of queues that get no heartbeat, or can't be read."""
        return {**self._unswept, **self._unanswered}

    def run(self) -> None:
        """Send a heartbeat, pass on what concerns a child, and have the supervisor execute its commands."""
        children = list(self.parent.children)
        for child in children:
            child.report(quiet=self.parent.quiet)
        failpoints.reach("before_heartbeat")
        wait = conf.section(QueueSettings).HEARTBEAT_INTERVAL
        answers: list[Answer] = []
        try:
            if children:
                answers = self._send(children)
                wait = min([wait, *(reply.next_lease + 0.001 for *_, reply in answers if reply.next_lease is not None)])
                for answer in answers:
                    self._pass_on(*answer)
                if self._reports:
                    self._read_reports()
            else:
                self._unanswered = {}
            self._log_broken(self._unanswered)
            if children:
                self._register_queues()  # last: of a Cluster, the node that has the list of queues may be down
        except UNAVAILABLE as error:
            self.error = str(error)
            if isinstance(error, AuthenticationFailed):
                self._unanswered = {queue.name: error for queue in self.parent.queues}
            wait = min(wait, AGAIN)
            raise
        except RedisFailure as error:
            self._log_limit.log(logger.error, "", "Heartbeat failed; retrying: %s", error)
        except Exception:
            logger.exception("Heartbeat failed; retrying.")
        finally:
            self.due = monotonic() + wait
            for *_, reply in answers:  # each command is read once
                if reply.command:
                    self.parent.execute(reply.command)

    def _send(self, children: Sequence[Child]) -> list[Answer]:
        sent = monotonic()
        pairs = [(child, number) for child in children for number in range(len(child.sources))]
        replies = send_heartbeats([child.sources[number] for child, number in pairs])
        self.answered = monotonic()
        self.reached = True
        self.waits, self.refused, self.error, self._unanswered = {}, {}, "", {}
        answers: list[Answer] = []
        times: dict[str, float] = {}
        for (child, number), reply in zip(pairs, replies, strict=True):
            name, error = child.sources[number].name, reply if isinstance(reply, RedisFailure) else reply.error
            if error:
                self._unanswered[name] = error
            if not isinstance(reply, RedisFailure):
                answers.append((child, number, reply))
                times[name] = reply.now
                if self._loss.suspects(child, number, reply, sent):
                    self._noted.pop(name, None)
        self._clock.note(times, sent, self.answered)
        return answers

    def _read_reports(self) -> None:
        """Read how each queue is doing. One round trip."""
        queues = self.parent.queues
        steps = [stats.QUEUE_STATS(queue.key(""), 1) for queue in queues]
        for queue, reply in zip(queues, queues[0].run_flow(single(Batch(steps, lenient=True))), strict=True):
            if isinstance(reply, RedisFailure):
                self._unanswered[queue.name] = reply
                continue
            report = stats.read_report([reply], 1)
            if report.wait is not None and not report.paused:
                self.waits[queue.name] = report.wait
            if report.refused:
                self.refused[queue.name] = report.refused

    def _register_queues(self) -> None:
        """Register the queues that are not registered yet, or that the server may have lost: else no round trip."""
        missing = [queue for queue in self.parent.queues if queue.name not in self._noted]
        if not missing:
            return
        try:
            for queue in missing:
                if queue.note():
                    self._loss.unlisted.add(queue.name)
                self._noted[queue.name] = queue
            self._loss.warn()
        except UNAVAILABLE:
            raise
        except RedisFailure as error:
            self._log_limit.log(logger.error, "names", "Names of queues could not be saved: %s", error)

    def forget_unused(self) -> None:
        """Take the queues off the list of names that nobody uses: no job was ever added, and no other worker is there.

        One round trip, and three more if there are any.
        """
        if sources := list(self._noted.values()):
            try:
                sources[0].run_flow(enqueue.forget_unused(sources))
            except RedisFailure as error:
                logger.debug("Names of queues that were never used stay: %s", error)

    def note_swept(self, errors: Mapping[str, RedisFailure]) -> None:
        """Note the errors of queues that could not be swept."""
        self._unswept = dict(errors)
        self._log_broken(errors)

    def _log_broken(self, errors: Mapping[str, RedisFailure]) -> None:
        for name, error in errors.items():
            self._log_limit.log(logger.error, name, "Queue %a gets no heartbeat or can't be read: %s", name, error)

    def _pass_on(self, child: Child, number: int, answer: HeartbeatReply) -> None:
        source = child.sources[number]
        if answer.next_job is not None and answer.next_job <= 3 * conf.section(QueueSettings).HEARTBEAT_INTERVAL:
            child.wake(answer.next_job)
        source.cancelled = answer.cancelled
        for id in answer.cancelled:  # with each heartbeat until it has ended: it may not have begun
            child.channel.say("cancel", number, id)
        child.reconcile(number, answer.held)
        if answer.returned:
            text = "Queue %a: %s of dead workers %s ready again."
            jobs, verb = counted(answer.returned, "job"), "is" if answer.returned == 1 else "are"
            logger.warning(text, source.name, jobs, verb)
        for job in answer.dead:
            announce_death(source, job)
        for listener in self.listeners if child.state == "working" else ():
            listener.heard(source, answer)


class ServerClock:
    """Compares the server's clock with the monotonic one, and logs if it went back, as after a fail-over."""

    def __init__(self) -> None:
        self._least: dict[str, float] = {}  # by how much a server's clock is ahead of the monotonic clock, at least

    def note(self, times: Mapping[str, float], sent: float, received: float) -> None:
        """Note the time on the server of each queue, asked for and answered at these monotonic times."""
        setbacks: dict[str, float] = {}
        for name, now in times.items():
            setback = self._least.get(name, now - sent) - (now - sent)
            if setback > TOLERANCE:
                setbacks[name] = setback
            self._least[name] = now - received
        if setbacks:
            text = (
                "The clock of the Redis server went back by %.1f s (%s). Until it has caught up, scheduled jobs begin "
                "late by that time, and so do the jobs of workers that died before."
            )
            logger.error(text, max(setbacks.values()), ", ".join(map(ascii, setbacks)))
