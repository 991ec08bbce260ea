"""Looks now and then for jobs that nothing leads to, as after a damaged key was deleted."""

import logging
from time import monotonic

from redis_kit.core.errors import RedisFailure
from redis_kit.queues.worker.shared.logs import counted
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue, sweep

logger = logging.getLogger("redis_kit.worker")
EVERY = 15.0  # seconds
NAMED = 5  # jobs in one line of the log


class Orphans:
    """Each supervisor looks at 200 jobs of each queue, by chance, four times a minute."""

    def __init__(self) -> None:
        self._at = 0.0
        self._wrong: dict[str, RedisFailure] = {}

    def look(self, sources: list[WorkerQueue]) -> dict[str, RedisFailure]:
        """Make those ready that are found; return what is wrong with queues. One round trip, or none."""
        if monotonic() < self._at:
            return self._wrong
        self._at = monotonic() + EVERY
        answers = dict(zip([source.name for source in sources], sweep(sources), strict=True))
        for name, found in answers.items():
            if found and not isinstance(found, RedisFailure):
                which = ", ".join(ascii(id.decode("utf-8", "backslashreplace")) for id in found[:NAMED])
                what = counted(len(found), "job")
                logger.error("Queue %a: %s that stood in no state put back, such as %s.", name, what, which)
        self._wrong = {name: found for name, found in answers.items() if isinstance(found, RedisFailure)}
        return self._wrong
