"""The scripts of numbers by hour, and the duty that adds up what a queue counts in its minutes."""

from collections.abc import Mapping, Sequence
from time import monotonic

from redis_kit.core.errors import RedisFailure
from redis_kit.core.flow import single
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.steps import Batch
from redis_kit.queues.engine.calls import QueueScript
from redis_kit.queues.features.statistics import counts as run_counts
from redis_kit.queues.queue import Queue

HOURS = 72  # for which counts are stored
MOST_TASKS = 100  # of a queue
COUNT_RUNS, LIST_RUNS = QueueScript("count_runs", __package__), QueueScript("list_runs", __package__)
KEPT_HOURS = 90 * 24
FOLD_INTERVAL = 60.0  # seconds between two looks at past hours
SOON = 1.0  # seconds to the next look if hours are left
AT_ONCE = 12  # hours that one call adds up, of 71 at most
FOLD_HOURS, GET_HOURS = QueueScript("fold_hours", __package__), QueueScript("get_hours", __package__)


def count_runs(base: str, counts: Mapping[str, Mapping[int, float]]) -> ScriptCall:
    """Return the step that adds counts of attempts, by task, to those of the present hour."""
    parts = [part for task, sums in counts.items() for part in (task, run_counts.dumps(sums))]
    return COUNT_RUNS(base, HOURS, MOST_TASKS, *parts)


def fold_hours(base: str) -> ScriptCall:
    """Return the step that adds up the minutes of some past hours; its reply is how many hours are left."""
    return FOLD_HOURS(base, AT_ONCE, KEPT_HOURS)


class HourFolding:
    """Adds up what queues counted in the minutes of past hours. One round trip each minute."""

    def __init__(self, queues: Sequence[Queue]) -> None:
        self.due = monotonic() + FOLD_INTERVAL
        self._queues = queues

    def run(self) -> None:
        """Add up some past hours of each queue."""
        steps = [fold_hours(queue.key("")) for queue in self._queues]
        replies = self._queues[0].run_flow(single(Batch(steps, lenient=True)))
        is_left = any(reply for reply in replies if not isinstance(reply, RedisFailure))
        self.due = monotonic() + (SOON if is_left else FOLD_INTERVAL)
