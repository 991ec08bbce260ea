"""The duties of queues themselves: orphaned jobs are ready again, and past minutes are added up."""

import logging
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import Any

from redis_kit.core.errors import RedisFailure
from redis_kit.core.flow import Flow
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.steps import Batch
from redis_kit.queues.engine import calls, hourly
from redis_kit.queues.engine.queue import Queue
from redis_kit.queues.worker.shared.logs import counted

logger = logging.getLogger("redis_kit.worker")
SWEEP_INTERVAL = 15.0  # seconds between two looks at each queue
FOLD_INTERVAL = 60.0  # seconds between two looks at past hours
SOON = 1.0  # seconds to the next look if hours are left
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
        replies = self._queues[0].run_flow(_each(self._queues, calls.sweep))
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


class HourFolding:
    """Adds up what queues counted in the minutes of past hours. One round trip each minute."""

    def __init__(self, queues: Sequence[Queue]) -> None:
        self.due = monotonic() + FOLD_INTERVAL
        self._queues = queues

    def run(self) -> None:
        """Add up some past hours of each queue."""
        replies = self._queues[0].run_flow(_each(self._queues, hourly.fold_hours))
        is_left = any(reply for reply in replies if not isinstance(reply, RedisFailure))
        self.due = monotonic() + (SOON if is_left else FOLD_INTERVAL)


def _each(queues: Sequence[Queue], step: Callable[[str], ScriptCall]) -> Flow[list[Any]]:
    replies: list[Any] = yield Batch([step(queue.key("")) for queue in queues], lenient=True)
    return replies
