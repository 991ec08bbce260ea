"""Keeps the children's leases alive, and gives back what dead workers held elsewhere."""

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
from redis_kit.queues.worker.shared import failpoints
from redis_kit.queues.worker.shared.reconnect import AWAY, Outage
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue, beat, waits
from redis_kit.queues.worker.supervisor.child import Child
from redis_kit.queues.worker.supervisor.maintenance import Orphans, Recaller

logger = logging.getLogger("redis_kit.worker")
TOLERANCE = 1.0  # seconds; clocks are corrected by less than that all the time
SHOWN = 3600.0  # seconds for which a clock that went back is reported, at least
AGAIN = 1.0  # seconds: the longest pause between two tries while the server is away


class Heartbeat:
    """Beats for all children and queues in one round trip, and earlier where another worker's lease is about to end.

    ``at`` is when the next beat is due, ``answered`` when one was last answered, both on the monotonic clock;
    ``reached`` says whether any was; ``waits``
    for how long the next job of each queue has waited, where ``reports`` asks for that, at one more round trip;
    ``broken`` says what is wrong with queues that get no beat or can't be read, ``clock`` whether the server's clock
    went back.
    """

    def __init__(self, outage: Outage, *, reports: bool = False) -> None:
        self._outage, self._reports = outage, reports
        self._noted = self.reached = False
        self.at, self.answered = 0.0, monotonic()
        self.waits: dict[str, float] = {}
        self.broken: dict[str, RedisFailure] = {}
        self._log_limit, self._orphans = LogRateLimit(), Orphans()
        self._recaller, self.clock = Recaller(), ServerClock()

    def beat(self, children: list[Child]) -> list[str]:
        """Beat, pass on what concerns a child, and return the orders that somebody left."""
        wait = conf.section(QueueSettings).HEARTBEAT_INTERVAL
        orders: list[str] = []
        failpoints.reach("before_beat")
        wrong: dict[str, RedisFailure] = {}
        try:
            answers = self._answers(children, wrong)
            for child, source, answer in answers:
                self._take_in(child, source, answer)
                orders += [answer.command] if answer.command else []
                if answer.next_lease is not None:
                    wait = min(wait, answer.next_lease + 0.001)
            self._look_around(children, wrong)
            self._take_note(wrong)
            self._recaller.see_to((source, answer.unknown) for child, source, answer in answers if child.claims)
        except AWAY as error:
            self._outage.say(error)
            if isinstance(error, AuthenticationFailed):
                self.broken = {source.name: error for child in children for source in child.sources}
            wait = min(wait, AGAIN)
        except RedisFailure as error:
            self._complain("", "A beat failed; the next one follows: %s", error)
        except Exception:
            logger.exception("A beat failed; the next one follows.")
        self.at = monotonic() + wait
        return orders

    def _answers(
        self, children: list[Child], wrong: dict[str, RedisFailure]
    ) -> list[tuple[Child, WorkerQueue, HeartbeatReply]]:
        pairs = [(child, source) for child in children for source in child.sources]
        if not pairs:
            return []
        found, sent = [], monotonic()
        for (child, source), answer in zip(pairs, beat([source for _, source in pairs]), strict=True):
            if isinstance(answer, RedisFailure):
                wrong[source.name] = answer
            else:
                found.append((child, source, answer))
        self._outage.say(None)
        self.answered, self.reached = monotonic(), True
        self.clock.note({source.name: answer.now for _, source, answer in found}, sent, self.answered)
        return found

    def _look_around(self, children: list[Child], wrong: dict[str, RedisFailure]) -> None:
        if not children:
            return
        sources = children[0].sources
        self._noted = self._noted or self._note(sources)
        wrong.update(self._orphans.look(sources))
        if self._reports:
            answers = dict(zip([source.name for source in sources], waits(sources), strict=True))
            wrong.update({name: answer for name, answer in answers.items() if isinstance(answer, RedisFailure)})
            self.waits = {name: answer for name, answer in answers.items() if isinstance(answer, float)}

    def _note(self, sources: list[WorkerQueue]) -> bool:
        try:
            for source in sources:
                source.note()
        except AWAY:
            raise
        except RedisFailure as error:
            self._complain("names", "The names of queues can't be kept: %s", error)
            return False
        return True

    def _take_note(self, wrong: dict[str, RedisFailure]) -> None:
        self.broken = wrong
        for name, error in wrong.items():
            self._complain(name, "Queue %a gets no beat or can't be read: %s", name, error)

    def _complain(self, about: str, *what: object) -> None:
        """Log an error, once a minute for one thing: it comes again with each beat."""
        if self._log_limit.allows(about):
            logger.error(*what)

    def _take_in(self, child: Child, source: WorkerQueue, answer: HeartbeatReply) -> None:
        index = child.sources.index(source)
        if answer.next_job is not None and answer.next_job <= 3 * conf.section(QueueSettings).HEARTBEAT_INTERVAL:
            child.line.say("look", index, f"{answer.next_job:.3f}")
        for id in answer.cancelled:  # with each beat, until it has ended: it may not have begun
            child.line.say("cancel", index, id)
        child.compare(index, answer.held)
        if answer.given_back:
            logger.warning("Queue %a: %d jobs of dead workers are ready again.", source.name, answer.given_back)
        for one in answer.dead:
            buried(source.name, one)


def buried(queue: str, job: Poison) -> None:
    """Tell that a job is dead since too many workers died with it."""
    task = f" ({job.task})" if job.task else ""
    logger.error("Job %a of queue %a%s is dead: %a", job.id, queue, task, job.reason)
    send_safely(signals.job_dead, Heartbeat, queue=queue, id=job.id, reason="poison")


class ServerClock:
    """Compares what the servers of a worker's queues say the time is. A fail-over to a slower clock counts, too."""

    def __init__(self) -> None:
        self._least: dict[str, float] = {}  # by how much a server's clock is ahead of the monotonic one, at least
        self._seconds = self._until = 0.0

    def note(self, times: Mapping[str, float], sent: float, received: float) -> None:
        """Take in the time on the server of each queue, asked for and answered at these monotonic times."""
        found: dict[str, float] = {}
        for name, now in times.items():
            back = self._least.get(name, now - sent) - (now - sent)
            if back > TOLERANCE:
                found[name] = back
            self._least[name] = now - received
        if found:
            self._seconds = max(found.values())
            self._until = monotonic() + max(SHOWN, self._seconds)
            text = (
                "The clock of the Redis server went back by %.1f s (%s). Until it has caught up, scheduled jobs begin "
                "late by that time, and so do the jobs of workers that died before."
            )
            logger.error(text, self._seconds, ", ".join(map(ascii, found)))

    @property
    def went_back(self) -> int:
        """Return by how many seconds it went back; 0 when it has caught up, and an hour has passed."""
        return ceil(self._seconds) if monotonic() < self._until else 0
