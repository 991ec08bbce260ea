"""Acknowledges what a dead child had done, and makes its other jobs ready. During an outage it retries."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from math import inf
from time import monotonic
from typing import Any

from redis_kit.core.errors import RedisFailure
from redis_kit.queues.engine import calls, claim
from redis_kit.queues.engine.done import Ack
from redis_kit.queues.engine.liveness import reap
from redis_kit.queues.worker.run.endings import record_unstoppable
from redis_kit.queues.worker.shared import failpoints
from redis_kit.queues.worker.shared.logs import named
from redis_kit.queues.worker.shared.reconnect import UNAVAILABLE, pause
from redis_kit.queues.worker.shared.status_board import Running
from redis_kit.queues.worker.supervisor.child import Child, SupervisedQueue
from redis_kit.queues.worker.supervisor.heartbeat import announce_death

logger = logging.getLogger("redis_kit.worker")
LATE = 1.0  # seconds until the second look: a claim that was under way may have arrived after the death


STAY = "Queue %a: jobs of a dead child stay until its lease expires: %s"
LOST = "Queue %a: an outcome of a dead child was lost; the job runs again: %s"


@dataclass(eq=False)
class DeadChild:
    """A dead child, its queues that are left to clean up, the jobs that it had done, and those that it ran.

    ``counts`` says whether these count a crash. ``at`` is when to clean up.
    """

    child: Child
    left: list[tuple[int, SupervisedQueue]]
    done: list[Ack] = field(default_factory=list)
    running: list[Running] = field(default_factory=list)
    counts: bool = False
    at: float = 0.0
    again: bool = False
    tries: int = 0


class Reaper:
    """Cleans up after dead children. If this process dies too, other workers do it when the leases end."""

    def __init__(self) -> None:
        self._dead_children: list[DeadChild] = []

    def add(self, child: Child, *, crashed: bool) -> None:
        """Take over from a child. After a crash its jobs count one, also if it was killed because of another job."""
        left, counts = list(enumerate(child.sources)), crashed and not child.killed_late
        dead_child = DeadChild(child, left, _done(child), child.board.running(), counts, again=crashed)
        self._dead_children.append(dead_child)

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
            self._dead_children.append(DeadChild(child, list(enumerate(child.sources)), at=monotonic() + LATE))


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
    step = calls.reap(source.key(""), child.worker, started, _beside(dead_child))
    count, dead = source.run_flow(reap(source, step, calls.TAKEN))
    if count:
        jobs = "1 job was" if count == 1 else f"{count} jobs were"
        names = named([item.id for item in running if item.member() not in ended])
        text = f"{jobs} taken from worker {child.worker}, which died{names and f'; it ran {names}'}"
        logger.warning("Queue %a: %s.", source.name, text)
    for job in dead:
        announce_death(source, job)


def _beside(dead_child: DeadChild) -> list[tuple[str, str]]:
    """Return the queue and id of each job that a child ran; nothing if that was one, which was alone."""
    child = dead_child.child
    jobs = {(child.sources[item.source].queue_name, item.id) for item in (*dead_child.running, *child.overdue)}
    return sorted(jobs) if len(jobs) > 1 else []


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
