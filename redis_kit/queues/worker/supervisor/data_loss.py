"""Tells a server that has lost its data, as by a restart without persistence, from a worker that was silent too long.

In both cases the server knows the worker only since its last call. A server that has lost its data has also lost the
name of the queue from its list of queues, unless another worker was faster, or running jobs that nobody else may have
taken: their lease had not ended, or no worker of the queue was there for a whole lease.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from time import monotonic
from typing import NamedTuple

from redis_kit.core import conf
from redis_kit.queues.engine.liveness import HeartbeatReply
from redis_kit.queues.settings import QueueSettings
from redis_kit.queues.worker.shared.logs import named
from redis_kit.queues.worker.shared.worker_queue import PAGE, WorkerQueue
from redis_kit.queues.worker.supervisor.child import Child

logger = logging.getLogger("redis_kit.worker")
Answer = tuple[Child, WorkerQueue, HeartbeatReply]


class Registration(NamedTuple):
    """Since when the server knows a child in a queue, in ms, and when the heartbeat was sent that said so."""

    since: int
    sent: float


class Suspicion(NamedTuple):
    """A queue that may have lost its data, the seconds without a heartbeat, and the time on the server in ms."""

    source: WorkerQueue
    silent: float
    now: int


class DataLoss:
    """Compares the answers to heartbeats, and warns once of each loss. ``sending`` is called before each heartbeat.

    ``unlisted`` takes the queues whose names were missing in the server's list of queues.
    """

    def __init__(self) -> None:
        self._registered: dict[tuple[str, str], Registration] = {}  # by queue and worker
        self.unlisted: set[str] = set()
        self._suspected: dict[str, Suspicion] = {}  # by queue
        self._gone: Counter[str] = Counter()  # running jobs that the server does not have, by queue
        self._running: dict[str, set[bytes]] = {}  # by worker
        self._sent = 0.0

    def sending(self, children: Iterable[Child]) -> None:
        """Note what runs, and the time."""
        self._running = {child.worker: {job.member() for job in child.board.running()} for child in children}
        self._sent = monotonic()

    def suspected(self, answers: Sequence[Answer]) -> list[str]:
        """Return the queues that may have lost their data."""
        now, queues = monotonic(), []
        for child, source, answer in answers:
            key = source.name, child.worker
            before = self._registered.get(key)
            if before and before.since != answer.since:
                queues.append(source.name)
                self._suspected[source.name] = Suspicion(source, now - before.sent, int(answer.now * 1000))
                self._gone[source.name] += self._missing(child, source, answer)
            self._registered[key] = Registration(answer.since, self._sent)
        for key in [key for key in self._registered if key[1] not in self._running]:
            del self._registered[key]
        return queues

    def warn(self) -> None:
        """Warn of the suspected queues that have lost data. No round trip, or one for each queue in doubt."""
        lost = [name for name, suspicion in self._suspected.items() if self._is_lost(name, suspicion)]
        suspected, gone = self._suspected, self._gone
        self._suspected, self._gone, self.unlisted = {}, Counter(), set()
        if lost:
            text = "The server has lost its data, as by a restart without persistence: waiting jobs are gone"
            _warn(text, lost, sum(gone[name] for name in lost))
        if late := [name for name in suspected if gone[name] and name not in lost]:
            silent = max(suspected[name].silent for name in late)
            text = f"This worker was silent for {silent:.1f} s, so that others may run its jobs again"
            _warn(text, late, sum(gone[name] for name in late))

    def _is_lost(self, queue: str, suspicion: Suspicion) -> bool:
        if queue in self.unlisted or not self._gone[queue]:
            return queue in self.unlisted
        lease = conf.section(QueueSettings).WORKER_TIMEOUT
        return suspicion.silent < lease or suspicion.source.served_since() > suspicion.now - lease * 1000

    def _missing(self, child: Child, source: WorkerQueue, answer: HeartbeatReply) -> int:
        """Return how many jobs ran before and after the heartbeat that the server does not hold as running."""
        if source.after or len(answer.held) == PAGE:
            return 0  # one page of several
        index = child.sources.index(source)
        running = {job.member() for job in child.board.running() if job.source == index and job.token}
        return len((running & self._running[child.worker]) - set(answer.held))


def _warn(text: str, queues: Sequence[str], gone: int) -> None:
    outcomes = "; their outcomes can't be recorded" if gone else ""
    logger.warning("%s. Queues: %s. Jobs that were running here: %d%s.", text, named(queues), gone, outcomes)
