"""The duty of queues themselves: orphaned jobs are ready again."""

import logging
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import Any

from redis_kit.core.errors import RedisFailure
from redis_kit.core.flow import Flow
from redis_kit.core.steps import Batch
from redis_kit.queues.engine import calls
from redis_kit.queues.engine.queue import Queue
from redis_kit.queues.worker.shared.logs import counted

logger = logging.getLogger("redis_kit.worker")
SWEEP_INTERVAL = 15.0  # seconds between two looks at each queue
NAMED = 5  # jobs in one line of the log


class Sweep:
    """Makes jobs ready that no state leads to, as after a damaged key was deleted. It looks at 200 of each queue.

    ``report`` is called with the errors of queues after each look. One round trip every 15 s.
    """

    def __init__(self, queues: Sequence[Queue], report: Callable[[Mapping[str, RedisFailure]], object]) -> None:
        self.due = 0.0
        self._queues, self._report = queues, report

    def run(self) -> None:
        """Look at some jobs of each queue, chosen by chance."""
        replies = self._queues[0].run_flow(_sweep(self._queues))
        self.due = monotonic() + SWEEP_INTERVAL
        errors: dict[str, RedisFailure] = {}
        for queue, reply in zip(self._queues, replies, strict=True):
            if isinstance(reply, RedisFailure):
                errors[queue.name] = reply
            elif reply:
                ids = ", ".join(ascii(id.decode("utf-8", "backslashreplace")) for id in reply[:NAMED])
                jobs = counted(len(reply), "job")
                logger.error("Queue %a: %s in no state made ready, such as %s.", queue.name, jobs, ids)
        self._report(errors)


def _sweep(queues: Sequence[Queue]) -> Flow[list[Any]]:
    replies: list[Any] = yield Batch([calls.sweep(queue.key("")) for queue in queues], lenient=True)
    return replies
