"""Asks the queues of a worker, each in its turn: ends what is done there, and claims."""

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from time import monotonic

from redis_kit.core.errors import RedisFailure
from redis_kit.core.logs.rate_limit import LogRateLimit
from redis_kit.queues.store.claim import Claimed
from redis_kit.queues.store.enqueue import MOST_ENDED, lost
from redis_kit.queues.worker.fetch.rotation import Rotation
from redis_kit.queues.worker.fetch.watchdog import Duties
from redis_kit.queues.worker.shared import failpoints
from redis_kit.queues.worker.shared.done import Done, RecentAcks
from redis_kit.queues.worker.shared.reconnect import AWAY, pause
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue

logger = logging.getLogger("redis_kit.worker")


class Exchanger:
    """Leaves a queue that failed alone for a while, ``shut`` until a moment on the monotonic clock.

    ``take_in`` gets what each queue gave at once, and how many jobs it was asked for, ``keep`` what could not be told,
    and until when; ``wake`` is called where a queue was not asked since there is no room. ``recent`` has what it told.
    """

    def __init__(
        self,
        sources: Sequence[WorkerQueue],
        order: Rotation,
        duties: Duties,
        take_in: Callable[[int, Claimed, int], None],
        keep: Callable[[int, list[Done], float], None],
        wake: Callable[[], None],
    ) -> None:
        self._sources, self._order, self._duties = sources, order, duties
        self._take_in, self._keep, self._wake = take_in, keep, wake
        self._failures: Counter[int] = Counter()
        self._log_limit = LogRateLimit()
        self.recent = RecentAcks()
        self.shut = [0.0] * len(sources)

    @property
    def failing(self) -> bool:
        """Tell whether a queue did not answer the last time."""
        return bool(+self._failures)

    def exchange(self, taken: list[list[Done]], room: int) -> tuple[list[Done], int]:
        """Tell what is done and claim as many jobs as there is room for; return what is recorded, and how many came."""
        told, claimed, asked = [], 0, room > 0
        for number in self._order.numbers():
            if self.shut[number] > monotonic():
                self._keep(number, taken[number], self.shut[number])
            elif room or taken[number]:
                count, recorded = self._one(number, room, taken[number])
                told += recorded
                room -= count
                claimed += count
            elif asked:
                self._wake()  # its turn comes when there is room again
        if told:
            self.recent.add([one.ended for one in told])
        return told, claimed

    def _one(self, number: int, room: int, done: list[Done]) -> tuple[int, list[Done]]:
        """Return how many jobs came from a queue, and which of the done ones it has recorded."""
        source, recorded, came = self._sources[number], [], 0
        for start in range(0, max(1, len(done)), MOST_ENDED):
            batch = done[start : start + MOST_ENDED]
            if room:
                self._duties.do(number)
            try:
                found = source.exchange(room, [one.ended for one in batch])
            except BaseException as error:  # what is done is kept, whatever it was
                self._put_off(number, error)
                self._keep(number, done[start:], self.shut[number])
                break
            if found.jobs:
                failpoints.reach("claimed")
            self._failures[number] = 0
            self._take_in(number, found, room)
            recorded += [one for at, one in enumerate(batch) if at not in found.lost]
            for at in found.lost:
                logger.warning("An outcome could not be recorded: %s", lost(source, [batch[at].job]))
            came, room = came + len(found.jobs), 0
        return came, recorded

    def _put_off(self, number: int, error: BaseException) -> None:
        name = self._sources[number].name
        self.shut[number] = monotonic() + pause(self._failures[number])
        self._failures[number] += 1
        if not isinstance(error, AWAY) and self._log_limit.allows(name):
            unforeseen = None if isinstance(error, RedisFailure) else error
            logger.error("Queue %a can't be read: %s", name, error, exc_info=unforeseen)
