"""Exchanges with the server: each acknowledges what is done and claims more jobs, one queue after the other."""

import logging
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate
from threading import Lock
from time import monotonic
from typing import NamedTuple

from redis_kit.core.errors import RedisFailure
from redis_kit.core.logs.rate_limit import LogRateLimit
from redis_kit.queues.engine.claim import MOST_ACKS, Claimed, lost
from redis_kit.queues.worker.fetch.claimed_jobs import NOW, Watchdog
from redis_kit.queues.worker.shared import failpoints
from redis_kit.queues.worker.shared.done import Done, RecentAcks
from redis_kit.queues.worker.shared.reconnect import UNAVAILABLE, pause
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue

logger = logging.getLogger("redis_kit.worker")
STAY = 0.1  # seconds for which a shard comes first: one call acknowledges its jobs and claims others there


class Rotation:
    """Strict: the first queue that has jobs. By weight: each queue comes first as often as its weight says.

    ``shards`` is how many each queue has. One of them, chosen at random, comes first for a tenth of a second.
    """

    def __init__(self, shards: Sequence[int], weights: Sequence[int] | None = None) -> None:
        self._weights = weights
        self._queues = range(len(shards))
        self._shards = [range(end - count, end) for end, count in zip(accumulate(shards), shards, strict=True)]
        self._is_sharded = max(shards) > 1
        self._first, self._until = 0.0, 0.0

    def numbers(self) -> Sequence[int]:
        """Return the numbers of all shards, in the order of this time. Those of a queue follow each other."""
        queues = self._ordered()
        if not self._is_sharded:
            return queues
        if monotonic() > self._until:
            self._first, self._until = random.random(), monotonic() + STAY  # noqa: S311 -- spreads load
        return [number for queue in queues for number in self._turned(self._shards[queue])]

    def _ordered(self) -> Sequence[int]:
        if self._weights is None:
            return self._queues
        # Each queue has a random wait, shorter for heavier queues, and the shortest comes first: Efraimidis and
        # Spirakis, "Weighted random sampling with a reservoir" (2006).
        waits = [random.expovariate(weight) for weight in self._weights]
        return sorted(self._queues, key=waits.__getitem__)

    def _turned(self, shards: range) -> list[int]:
        at = int(self._first * len(shards))
        return [*shards[at:], *shards[:at]]


class Reply(NamedTuple):
    """The answer of one queue.

    ``claimed`` is its answer to a claim of ``room`` jobs. It is None if the queue was left alone or did not answer:
    then ``unsent`` is what it has yet to be told, and it is to be asked again at ``retry_at``.
    """

    number: int
    room: int = 0
    claimed: Claimed | None = None
    recorded: Sequence[Done] = ()
    unsent: Sequence[Done] = ()
    retry_at: float = NOW


class Exchanger:
    """At most one exchange at a time: the thread that makes it holds ``turn``.

    A queue that failed is left alone for a while: ``retry_at`` of its number. No jobs are claimed from a queue before
    ``closed_until``: the system that runs them is unavailable. ``recent`` has what was acknowledged.
    """

    def __init__(self, queues: Sequence[WorkerQueue], rotation: Rotation, watchdog: Watchdog) -> None:
        self._queues, self._rotation, self._watchdog = queues, rotation, watchdog
        self._failures: Counter[int] = Counter()
        self._log_limit = LogRateLimit()
        self.turn = Lock()
        self.recent = RecentAcks()
        self.retry_at = [NOW] * len(queues)
        self.closed_until = [NOW] * len(queues)

    @property
    def failing(self) -> bool:
        """Tell whether a queue did not answer the last time."""
        return bool(+self._failures)

    @property
    def closed(self) -> bool:
        """Tell whether jobs of a queue are left where they are."""
        return max(self.closed_until) > monotonic()

    def exchange(self, done: list[list[Done]], room: int) -> Iterator[Reply]:
        """Send what is done, and claim as many jobs as there is room for. Yields each answer as it comes."""
        claims = room > 0
        for number in self._rotation.numbers():
            if self.retry_at[number] > monotonic():
                yield Reply(number, unsent=done[number], retry_at=self.retry_at[number])
            elif self.closed_until[number] > monotonic():
                yield from self._leave(number, done[number])
            elif room or done[number]:
                for reply in self._ask(number, room, done[number]):
                    room -= len(reply.claimed.jobs) if reply.claimed else 0
                    yield reply
            elif claims:
                yield Reply(number)  # its turn comes when there is room again

    def _leave(self, number: int, done: list[Done]) -> Iterator[Reply]:
        """Acknowledge jobs of a queue, and claim none there until later."""
        self._watchdog.asks(number)  # it is not neglected
        if done:
            yield from self._ask(number, 0, done)
        yield Reply(number, retry_at=self.closed_until[number])

    def _ask(self, number: int, room: int, done: list[Done]) -> Iterator[Reply]:
        queue = self._queues[number]
        for start in range(0, max(1, len(done)), MOST_ACKS):
            batch = done[start : start + MOST_ACKS]
            if room:
                self._watchdog.asks(number)
            try:
                claimed = queue.exchange(room, [item.ended for item in batch])
            except BaseException as error:  # what is done is kept, whatever it was
                self._put_off(number, error)
                yield Reply(number, unsent=done[start:], retry_at=self.retry_at[number])
                return
            if claimed.jobs:
                failpoints.reach("claimed")
            self._failures[number] = 0
            recorded = [item for at, item in enumerate(batch) if at not in claimed.lost] if claimed.lost else batch
            if recorded:
                self.recent.add([item.again or item.ended for item in recorded])
            yield Reply(number, room, claimed, recorded)
            for at in claimed.lost:
                logger.warning("An outcome could not be recorded: %s", lost(queue, [batch[at].job]))
            room = 0

    def _put_off(self, number: int, error: BaseException) -> None:
        name = self._queues[number].name
        self.retry_at[number] = monotonic() + pause(self._failures[number])
        self._failures[number] += 1
        if not isinstance(error, UNAVAILABLE) and self._log_limit.allows(name):
            unforeseen = None if isinstance(error, RedisFailure) else error
            logger.error("Queue %a can't be read: %s", name, error, exc_info=unforeseen)
