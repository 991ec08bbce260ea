"""Acknowledges what a dead child had done, and makes its other jobs ready. During an outage it retries."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Any

from redis_kit.core.errors import RedisFailure
from redis_kit.core.flow import Flow
from redis_kit.queues.jobs.ack import Ack
from redis_kit.queues.store import calls, claim
from redis_kit.queues.store.liveness import Poison, poison
from redis_kit.queues.worker.run.outcome import record_overdue
from redis_kit.queues.worker.shared import failpoints
from redis_kit.queues.worker.shared.logs import named
from redis_kit.queues.worker.shared.reconnect import UNAVAILABLE, Outage, pause
from redis_kit.queues.worker.shared.status_board import Running
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue
from redis_kit.queues.worker.supervisor.child import Child
from redis_kit.queues.worker.supervisor.heartbeat import buried

logger = logging.getLogger("redis_kit.worker")
LATE = 1.0  # seconds until the second look: a claim that was under way may have arrived after the death


@dataclass(eq=False)
class DeadChild:
    """A dead child: its queues, the jobs it had done, is blamed for, ran for too long, and ran in all.

    ``at`` is when to clean up after it.
    """

    worker: str
    left: list[tuple[int, WorkerQueue]]
    done: list[Ack]
    ran: list[Running]
    overdue: list[Running]
    running: list[Running]
    at: float = 0.0
    again: bool = False
    tries: int = 0


class Reaper:
    """Cleans up after dead children. If this process dies too, other workers do it when the leases end."""

    def __init__(self, outage: Outage) -> None:
        self._outage = outage
        self._estates: list[DeadChild] = []

    def add(self, child: Child, *, crashed: bool) -> None:
        """Take over from a child. After a crash its jobs count one, unless it was killed because of another job."""
        ran = child.board.running()
        late = {(one.source, one.token, one.id) for one in child.overdue}
        over = [one for one in ran if (one.source, one.token, one.id) in late]
        blamed = ran if crashed and not child.overdue and not child.given_up else []
        left = list(enumerate(child.sources))
        self._estates.append(DeadChild(child.worker, left, _done(child), blamed, over, ran, again=crashed))

    def next(self) -> float | None:
        """Return when there is something to do next, on the monotonic clock."""
        return min((estate.at for estate in self._estates), default=None)

    @property
    def owing(self) -> bool:
        """Tell whether the server has yet to answer for a dead child. The second look does not count."""
        return any(estate.tries or not estate.at for estate in self._estates)

    @property
    def holding(self) -> bool:
        """Tell whether a dead child ran jobs that are not cleaned up yet."""
        return any(estate.running or estate.done for estate in self._estates)

    def run(self) -> None:
        """Do what is due."""
        now = monotonic()
        for estate in [one for one in self._estates if one.at <= now]:
            try:
                self._see_to(estate)
            except UNAVAILABLE as error:
                self._outage.say(error)
                estate.at = monotonic() + pause(estate.tries)
                estate.tries += 1
                return  # it would not answer for the others either

    def _see_to(self, estate: DeadChild) -> None:
        sources = [source for _, source in estate.left]
        while estate.left:
            index, source = estate.left[0]
            try:
                _reap(estate, index, source)
            except UNAVAILABLE:
                raise
            except Exception as error:
                _complain("Queue %a: jobs of a dead child stay until its lease expires: %s", source, error)
            estate.left.pop(0)
        failpoints.reach("reaped")
        self._outage.say(None)
        self._estates.remove(estate)
        if estate.again:
            left = list(enumerate(sources))
            self._estates.append(DeadChild(estate.worker, left, [], [], [], [], at=monotonic() + LATE))


def _done(child: Child) -> list[Ack]:
    found = []
    for entry in child.board.noted():
        try:
            found.append(Ack.unpack(entry))
        except ValueError:
            logger.exception("Worker %s: an outcome on its board can't be read.", child.worker)
    return found


def _reap(estate: DeadChild, index: int, source: WorkerQueue) -> None:
    done = [one for one in estate.done if one.source == index]
    _tried(source, lambda: source.run_flow(_told(source, estate.worker, done)))
    failpoints.reach("outcomes_sent")
    over = {one.token + b"/" + one.id for one in done}
    for late in estate.overdue:
        if late.source == index and _tried(source, partial(record_overdue, source, late)):
            over.add(late.member())
    ran = [one.id for one in estate.ran if one.source == index]
    taken, dead = source.run_flow(_taken(source, estate.worker, ran))
    if taken:
        many = "1 job was" if taken == 1 else f"{taken} jobs were"
        its = named([one.id for one in estate.running if one.source == index and one.member() not in over])
        what = f"{many} taken from worker {estate.worker}, which died{its and f'; it ran {its}'}"
        logger.warning("Queue %a: %s.", source.name, what)
    for job in dead:
        buried(source.name, job)


def _tried(source: WorkerQueue, step: Callable[[], Any]) -> bool:
    """Take a step, and say whether it succeeded; its error is logged."""
    try:
        step()
    except UNAVAILABLE:
        raise
    except Exception as error:
        _complain("Queue %a: an outcome of a dead child was lost; the job runs again: %s", source, error)
        return False
    return True


def _complain(what: str, source: WorkerQueue, error: Exception) -> None:
    unforeseen = None if isinstance(error, RedisFailure) else error
    logger.error(what, source.name, error, exc_info=unforeseen)


def _told(source: WorkerQueue, worker: str, done: list[Ack]) -> Flow[None]:
    for start in range(0, len(done), claim.MOST_ACKS):
        yield calls.ack(source.key(""), worker, done[start : start + claim.MOST_ACKS])


def _taken(source: WorkerQueue, worker: str, ran: list[str]) -> Flow[tuple[int, list[Poison]]]:
    total, dead = 0, []
    while True:
        taken, *told = yield calls.reap(source.key(""), worker, ran)
        total += taken
        dead += poison(told)
        if taken < calls.TAKEN:
            return total, dead
