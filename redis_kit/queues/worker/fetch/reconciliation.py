"""Compares the jobs that the server holds as running with those that a worker has.

A server that was killed, or a replica that took its place, may lack its last seconds: it holds jobs as running that
ended long ago. Heartbeats list running jobs page by page. If a child's board does not show a job in two passes in a
row, the supervisor asks the child about it.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress

from redis_kit.core.errors import RedisFailure
from redis_kit.queues.errors import LeaseLost
from redis_kit.queues.jobs.ack import Ack
from redis_kit.queues.store import claim
from redis_kit.queues.worker.shared.done import RecentAcks
from redis_kit.queues.worker.shared.logs import counted
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue

logger = logging.getLogger("redis_kit.worker")


class Reconciler:
    """Reconciles jobs that the supervisor asks about. ``held`` returns those in hand or not yet acknowledged."""

    def __init__(self, sources: Sequence[WorkerQueue], recent: RecentAcks, held: Callable[[], set[bytes]]) -> None:
        self._sources, self._recent, self._held = sources, recent, held
        self._asked: list[tuple[int, list[bytes]]] = []

    def ask(self, number: int, members: Sequence[str]) -> None:
        """Check these with the next exchange. Nothing depends on it: the next heartbeat asks again."""
        self._asked.append((number, [member.encode("utf-8", "surrogateescape") for member in members]))

    def run(self) -> None:
        """Record or return what no thread has. Called during an exchange, so no other claim is on its way."""
        asked, self._asked = self._asked, []
        for number, members in asked:
            source, held = self._sources[number], self._held()
            claims = claim.unanswered(source, source.worker)
            unknown = [member for member in members if member not in held and _claim(member) not in claims]
            try:
                _settle(source, self._recent, unknown)
            except RedisFailure as error:
                logger.debug("Queue %a: jobs held as running could not be reconciled: %s", source.name, error)
            except Exception:
                logger.exception("Queue %a: jobs held as running could not be reconciled.", source.name)


def _settle(source: WorkerQueue, recent: RecentAcks, unknown: list[bytes]) -> None:
    remembered = recent.find(unknown)
    if ended := [ack for ack in remembered.values() if isinstance(ack, Ack)]:
        source.end(ended)
    for ack in remembered.values():
        if not isinstance(ack, Ack):
            with suppress(LeaseLost):
                ack.record()
    count = source.put_back([member for member in unknown if member not in remembered])
    if remembered:
        text = "Queue %a: the server had lost the outcomes of %s; recorded again."
        logger.warning(text, source.name, counted(len(remembered), "job"))
    if count:
        text = "Queue %a: the server held %s as running that no thread runs; ready again."
        logger.warning(text, source.name, counted(count, "job"))


def _claim(member: bytes) -> str:
    return member.split(b"/")[1].decode("utf-8", "replace") if member.count(b"/") > 1 else ""
