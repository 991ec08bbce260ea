"""The duty of statistics: past minutes are added up."""

from collections.abc import Sequence
from time import monotonic
from typing import Any

from redis_kit.core.errors import RedisFailure
from redis_kit.core.flow import Flow
from redis_kit.core.steps import Batch
from redis_kit.queues.features.statistics import store
from redis_kit.queues.queue import Queue

FOLD_INTERVAL = 60.0  # seconds between two looks at past hours
SOON = 1.0  # seconds to the next look if hours are left


class HourFolding:
    """Adds up what queues counted in the minutes of past hours. One round trip each minute."""

    def __init__(self, queues: Sequence[Queue]) -> None:
        self.due = monotonic() + FOLD_INTERVAL
        self._queues = queues

    def run(self) -> None:
        """Add up some past hours of each queue."""
        replies = self._queues[0].run_flow(_fold(self._queues))
        is_left = any(reply for reply in replies if not isinstance(reply, RedisFailure))
        self.due = monotonic() + (SOON if is_left else FOLD_INTERVAL)


def _fold(queues: Sequence[Queue]) -> Flow[list[Any]]:
    replies: list[Any] = yield Batch([store.fold_hours(queue.key("")) for queue in queues], lenient=True)
    return replies
