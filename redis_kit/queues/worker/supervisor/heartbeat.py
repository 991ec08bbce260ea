"""Keeps the children's leases alive, and returns jobs of workers that died elsewhere."""

import logging
from collections.abc import Mapping
from math import ceil
from time import monotonic

from redis_kit.core import conf
from redis_kit.core.errors import AuthenticationFailed, RedisFailure
from redis_kit.core.logs.rate_limit import LogRateLimit
from redis_kit.core.signals import send_safely
from redis_kit.queues import signals
from redis_kit.queues.settings import QueueSettings
from redis_kit.queues.store.liveness import HeartbeatReply, Poison
from redis_kit.queues.store.workflows import calls, repair
from redis_kit.queues.worker.run.workflow_step import report_failure
from redis_kit.queues.worker.shared import failpoints
from redis_kit.queues.worker.shared.logs import counted
from redis_kit.queues.worker.shared.reconnect import UNAVAILABLE, Outage
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue, beat, forget_unused, reports
from redis_kit.queues.worker.supervisor.child import Child
from redis_kit.queues.worker.supervisor.data_loss import DataLoss
from redis_kit.queues.worker.supervisor.maintenance import Orphans, Recaller

logger = logging.getLogger("redis_kit.worker")
TOLERANCE = 1.0  # seconds; clocks are corrected by less than that all the time
SHOWN = 3600.0  # seconds for which a clock that went back is reported, at least
AGAIN = 1.0  # seconds: the longest pause between two tries while the server is unavailable


WORKFLOWS_INTERVAL = 15.0  # seconds between two looks


class Caretaker:
    """Repairs workflows whose jobs are gone or were never added, and takes expired ones off the list of all."""

    def __init__(self) -> None:
        self._at = 0.0
        self._log_limit = LogRateLimit()

    def look(self, source: WorkerQueue) -> None:
        """Look after the workflows that are due for it. At most 20 of them.

        Three round trips every 15 s, and two or more for each of them.
        """
        if monotonic() < self._at:
            return
        self._at = monotonic() + WORKFLOWS_INTERVAL
        try:
            many_expired = source.run_flow(repair.forget_expired())
            ids = source.run_flow(repair.taken())
        except UNAVAILABLE:
            raise
        except RedisFailure as error:
            self._complain("", error)
            return
        if many_expired or len(ids) == calls.CHECKED_WORKFLOWS:  # the next ones follow with the next heartbeat
            self._at = 0.0
        for id in ids:
            try:
                _log(source.run_flow(repair.repair(id)))
            except UNAVAILABLE:
                raise
            except (RedisFailure, ValueError) as error:
                self._complain(id, error)

    def _complain(self, id: str, error: Exception) -> None:
        if self._log_limit.allows(id):
            logger.error("Workflow %s can't be read: %s" if id else "Workflows can't be read%s: %s", id, error)


def _log(repaired: repair.Repaired) -> None:
    if repaired.added:
        logger.warning("Workflow %s: %s added again.", repaired.id, counted(repaired.added, "job"))
    for number, error in repaired.failed:
        logger.error("Workflow %s: step %d has failed: %s", repaired.id, number, error)


class Heartbeat:
    """Sends the heartbeats of all children and queues in one round trip, earlier if another worker's lease ends soon.

    ``at`` is when the next one is due, ``answered`` when the last one was answered, both on the monotonic clock;
    ``reached`` says whether any was. ``waits`` has the seconds that the next job of each queue had waited then: if
    ``reports`` is set, at one more round trip, and ``refused`` why the server refuses writes to a queue. ``error`` is
    that of the last heartbeat, ``broken`` has the errors of queues, ``clock`` the server's clock.
    """

    def __init__(self, outage: Outage, *, reports: bool = False) -> None:
        self._outage, self._reports = outage, reports
        self.reached = False
        self._noted: dict[str, WorkerQueue] = {}  # queues on the server's list of names
        self.at, self.answered = 0.0, monotonic()
        self.waits: dict[str, float] = {}
        self.refused: dict[str, str] = {}
        self.error = ""
        self.broken: dict[str, RedisFailure] = {}
        self._log_limit, self._orphans = LogRateLimit(), Orphans()
        self._recaller, self._caretaker = Recaller(), Caretaker()
        self.clock, self._loss = ServerClock(), DataLoss()

    def beat(self, children: list[Child]) -> list[str]:
        """Send a heartbeat, pass on what concerns a child, and return the commands for this supervisor."""
        wait = conf.section(QueueSettings).HEARTBEAT_INTERVAL
        commands: list[str] = []
        failpoints.reach("before_heartbeat")
        wrong: dict[str, RedisFailure] = {}
        try:
            answers = self._answers(children, wrong)
            for child, source, answer in answers:
                self._take_in(child, source, answer)
                commands += [answer.command] if answer.command else []
                if answer.next_lease is not None:
                    wait = min(wait, answer.next_lease + 0.001)
            self._look_around(children, wrong)
            self._take_note(wrong)
            self._recall([answer for answer in answers if answer[0].claims])
        except UNAVAILABLE as error:
            self._outage.say(error)
            self.error = str(error)
            if isinstance(error, AuthenticationFailed):
                self.broken = {source.name: error for child in children for source in child.sources}
            wait = min(wait, AGAIN)
        except RedisFailure as error:
            self._complain("", "Heartbeat failed; retrying: %s", error)
        except Exception:
            logger.exception("Heartbeat failed; retrying.")
        self.at = monotonic() + wait
        return commands

    def _answers(
        self, children: list[Child], wrong: dict[str, RedisFailure]
    ) -> list[tuple[Child, WorkerQueue, HeartbeatReply]]:
        pairs = [(child, source) for child in children for source in child.sources]
        if not pairs:
            return []
        self._loss.sending(children)
        answered, sent = [], monotonic()
        for (child, source), answer in zip(pairs, beat([source for _, source in pairs]), strict=True):
            if isinstance(answer, RedisFailure):
                wrong[source.name] = answer
            else:
                answered.append((child, source, answer))
        self._outage.say(None)
        self.answered, self.reached, self.waits, self.refused, self.error = monotonic(), True, {}, {}, ""
        for name in self._loss.suspected(answered):
            self._noted.pop(name, None)
        self.clock.note({source.name: answer.now for _, source, answer in answered}, sent, self.answered)
        return answered

    def _recall(self, answers: list[tuple[Child, WorkerQueue, HeartbeatReply]]) -> None:
        ready = self._recaller.see_to((source, answer.unknown) for _, source, answer in answers)
        for child, source, _ in answers:
            if source.name in ready:
                child.wake(source)

    def _look_around(self, children: list[Child], wrong: dict[str, RedisFailure]) -> None:
        if not children:
            return
        sources = max((child.sources for child in children), key=len)  # one that runs a single job has one queue
        self._note(sources)
        wrong.update(self._orphans.look(sources))
        self._caretaker.look(sources[0])
        if self._reports:
            answers = dict(zip([source.name for source in sources], reports(sources), strict=True))
            wrong.update({name: answer for name, answer in answers.items() if isinstance(answer, RedisFailure)})
            states = {name: answer for name, answer in answers.items() if not isinstance(answer, RedisFailure)}
            self.waits = {name: report.wait for name, report in states.items() if report.wait is not None}
            self.refused = {name: report.refused for name, report in states.items() if report.refused}

    def _note(self, sources: list[WorkerQueue]) -> None:
        """Register the queues that are not registered yet, or that the server may have lost: else no round trip."""
        missing = [source for source in sources if source.name not in self._noted]
        if not missing:
            return
        try:
            for source in missing:
                if source.note():
                    self._loss.unlisted.add(source.name)
                self._noted[source.name] = source
            self._loss.warn()
        except UNAVAILABLE:
            raise
        except RedisFailure as error:
            self._complain("names", "Names of queues could not be saved: %s", error)

    def forget_unused(self) -> None:
        """Take the queues off the list of names that nobody uses: no job was ever added, and no other worker is there.

        One round trip, and three more if there are any.
        """
        if sources := list(self._noted.values()):
            try:
                forget_unused(sources)
            except RedisFailure as error:
                logger.debug("Names of queues that were never used stay: %s", error)

    def _take_note(self, wrong: dict[str, RedisFailure]) -> None:
        self.broken = wrong
        for name, error in wrong.items():
            self._complain(name, "Queue %a gets no heartbeat or can't be read: %s", name, error)

    def _complain(self, about: str, *what: object) -> None:
        """Log an error, at most once a minute for each subject: it comes again with each heartbeat."""
        if self._log_limit.allows(about):
            logger.error(*what)

    def _take_in(self, child: Child, source: WorkerQueue, answer: HeartbeatReply) -> None:
        index = child.sources.index(source)
        if answer.next_job is not None and answer.next_job <= 3 * conf.section(QueueSettings).HEARTBEAT_INTERVAL:
            child.wake(source, answer.next_job)
        child.cancelled[index] = answer.cancelled
        for id in answer.cancelled:  # with each heartbeat until it has ended: it may not have begun
            child.channel.say("cancel", index, id)
        child.compare(index, answer.held)
        if answer.returned:
            text = "Queue %a: %s of dead workers %s ready again."
            jobs, verb = counted(answer.returned, "job"), "is" if answer.returned == 1 else "are"
            logger.warning(text, source.name, jobs, verb)
        for job in answer.dead:
            buried(source, job)


def buried(source: WorkerQueue, job: Poison) -> None:
    """Announce that a job is dead as its processes died; its workflow, if it has one, learns of it."""
    task = f" ({job.task})" if job.task else ""
    logger.error("Job %a of queue %a%s is dead: %a", job.id, source.name, task, job.reason)
    send_safely(signals.job_dead, Heartbeat, queue=source.queue_name, id=job.id, reason="poison")
    if job.step:
        report_failure(source, job.step, job.reason)


class ServerClock:
    """Compares the server's clock with the monotonic one, and notices if it went back, as after a fail-over."""

    def __init__(self) -> None:
        self._least: dict[str, float] = {}  # by how much a server's clock is ahead of the monotonic clock, at least
        self._seconds = self._until = 0.0

    def note(self, times: Mapping[str, float], sent: float, received: float) -> None:
        """Note the time on the server of each queue, asked for and answered at these monotonic times."""
        jumps: dict[str, float] = {}
        for name, now in times.items():
            back = self._least.get(name, now - sent) - (now - sent)
            if back > TOLERANCE:
                jumps[name] = back
            self._least[name] = now - received
        if jumps:
            self._seconds = max(jumps.values())
            self._until = monotonic() + max(SHOWN, self._seconds)
            text = (
                "The clock of the Redis server went back by %.1f s (%s). Until it has caught up, scheduled jobs begin "
                "late by that time, and so do the jobs of workers that died before."
            )
            logger.error(text, self._seconds, ", ".join(map(ascii, jumps)))

    @property
    def went_back(self) -> int:
        """Return by how many seconds it went back; 0 once it has caught up and an hour has passed."""
        return ceil(self._seconds) if monotonic() < self._until else 0
