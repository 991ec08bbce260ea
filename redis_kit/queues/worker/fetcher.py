"""Gets work: as many jobs as there are free threads, from the first queue that has any."""

import logging
from collections import Counter
from collections.abc import Callable
from threading import Event
from time import monotonic

from redis_kit.core.errors import RedisFailure, RedisUnavailable
from redis_kit.queues.worker import failpoints
from redis_kit.queues.worker.alarm import Alarm
from redis_kit.queues.worker.manager import Manager
from redis_kit.queues.worker.patience import pause
from redis_kit.queues.worker.source import Source

logger = logging.getLogger("redis_kit.worker")
COMPLAIN = 60.0  # seconds between two log lines about the same queue


class Fetcher:
    """Claims when a thread gets free, when a listener heard something, and when a scheduled job is due."""

    def __init__(
        self, sources: list[Source], manager: Manager, *, alarm: Alarm, stopping: Event, on_empty: Callable[[], None]
    ) -> None:
        self._sources, self._manager, self._alarm, self._stopping = sources, manager, alarm, stopping
        self._on_empty = on_empty
        self._failures: Counter[str] = Counter()
        self._complained: dict[str, float] = {}

    def run(self) -> None:
        """Fetch until the worker stops."""
        while not self._stopping.is_set():
            while self._fetch():
                pass
            self._alarm.wait()

    def _fetch(self) -> bool:
        """Claim once from the queues, in their order; say whether to go on at once."""
        free, was_idle = self._manager.free, self._manager.busy == 0
        if not free or self._stopping.is_set():
            return False
        for source in self._sources:
            if self._claim(source, free):
                return True
        if was_idle and not +self._failures:
            self._on_empty()
        return False

    def _claim(self, source: Source, limit: int) -> bool:
        try:
            claimed = source.fetch(limit)
        except RedisFailure as error:
            self._put_off(source, error)
            return False
        if claimed.jobs:
            failpoints.reach("claimed")
        self._failures[source.name] = 0
        if self._stopping.is_set():
            return False  # the launcher gives them back
        for job in claimed.jobs:
            self._manager.give(source, job)
        if claimed.next is not None:
            self._alarm.set(claimed.next)
        return bool(claimed.jobs) or claimed.next == 0

    def _put_off(self, source: Source, error: RedisFailure) -> None:
        self._alarm.set(pause(self._failures[source.name]))
        self._failures[source.name] += 1
        if not isinstance(error, RedisUnavailable) and monotonic() > self._complained.get(source.name, 0):
            self._complained[source.name] = monotonic() + COMPLAIN
            logger.error("Queue %a can't be read: %s", source.name, error)
