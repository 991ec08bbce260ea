"""Statistics of tasks over the last hours, and the numbers of a queue by hour."""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from redis_kit.core.errors import RedisFailure
from redis_kit.core.flow import Flow, operation, twin
from redis_kit.core.steps import Batch
from redis_kit.core.values.numbers import whole_number
from redis_kit.queues.engine.calls import QueueScript
from redis_kit.queues.engine.spread import spread
from redis_kit.queues.features.statistics import counts as counts_of
from redis_kit.queues.features.statistics.counts import HOURS, KEPT_HOURS, TaskStats
from redis_kit.queues.queue import Queue, over
from redis_kit.queues.reports.stats import QueueHistory, of_all

LIST_RUNS, GET_HOURS = QueueScript("list_runs", __package__), QueueScript("get_hours", __package__)
ByTask = dict[tuple[str, str], TaskStats]  # by queue and task


class TaskHistory(NamedTuple):
    """The statistics of a task in each hour up to ``hour``, the present one, counted since 1970."""

    hour: int
    stats: list[TaskStats]


class StoredRuns(NamedTuple):
    """The stored counts of attempts, by queue and task, and the present hour, counted since 1970."""

    hour: int
    blocks: dict[tuple[str, str], list[bytes]]

    def stats(self, only: str = "") -> ByTask:
        """Return the statistics of the tasks that ran in these hours; ``only`` of one if given."""
        chosen = {key: counts_of.summed(stored) for key, stored in self.blocks.items() if only in ("", key[1])}
        return {key: stats for key, counts in chosen.items() if (stats := counts_of.stats(counts)).runs}

    def history(self, task: str, hours: int) -> TaskHistory:
        """Return the statistics of a task in all these queues by hour."""
        counts = counts_of.by_hour(block for key, stored in self.blocks.items() if key[1] == task for block in stored)
        first = self.hour - hours + 1
        return TaskHistory(self.hour, [counts_of.stats(counts[first + at]) for at in range(hours)])


@operation(over=over)
def task_stats(queue: str, *, hours: int = HOURS, using: str = "default") -> Flow[dict[str, TaskStats]]:
    """Return the statistics of a queue's tasks by their names, of the last hours, 1 to 72, the present one among them.

    Workers count attempts that ended, and send their counts every five seconds. A percentile is the longest time that
    the counts allow. After 100 tasks of a queue, the others are counted together, as "". One round trip, two if the
    settings name SHARDS. Raises InvalidValue.
    """
    runs = yield from read_runs([queue], hours, using)
    return {task: stats for (_, task), stats in runs.stats().items()}


@operation(over=over)
def task_history(queue: str, task: str, *, hours: int = HOURS, using: str = "default") -> Flow[TaskHistory]:
    """Return the statistics of one task of a queue in each of the last hours, 1 to 72, the present one among them.

    An hour without an attempt has no percentiles. It costs as much as task_stats(), and raises InvalidValue.
    """
    runs = yield from read_runs([queue], hours, using)
    return runs.history(task, hours)


def stored_runs(queues: Sequence[str], hours: int, using: str = "default") -> StoredRuns:
    """Return the counts of several queues. One round trip, two if the settings name SHARDS."""
    runs: StoredRuns = over(using).run_flow(read_runs(queues, hours, using))
    return runs


def read_runs(queues: Iterable[str], hours: int, using: str) -> Flow[StoredRuns]:
    """See stored_runs(). Those of a damaged key are left out."""
    whole_number("hours", hours, (1, HOURS))
    present = 0
    blocks: dict[tuple[str, str], list[bytes]] = {}
    for queue, reply in (yield from of_all(queues, using, lambda base: LIST_RUNS(base, hours))):
        if isinstance(reply, RedisFailure):
            continue
        present = max(present, reply[0])
        for task, stored in zip(reply[1::2], reply[2::2], strict=True):
            blocks.setdefault((queue, task.decode("utf-8", "replace")), []).append(stored)
    return StoredRuns(present or int(time.time() // counts_of.HOUR), blocks)


@operation(over=over)
def queue_history(queue: str, *, hours: int = 168, using: str = "default") -> Flow[QueueHistory]:
    """Return the numbers of a queue in the last hours, 1 to 2160, the present one among them.

    A supervisor of ``rk_worker`` adds up the minutes of past hours. Those of a queue without one end after 72 hours.
    One round trip, two if the settings name SHARDS. Raises InvalidValue.
    """
    return read_history(queue, hours, using)


def read_history(queue: str, hours: int, using: str) -> Flow[QueueHistory]:
    """See queue_history()."""
    whole_number("hours", hours, (1, KEPT_HOURS))
    names = yield from spread().existing([queue])
    replies = yield Batch([GET_HOURS(Queue(name, using=using).key(""), hours) for name in names[queue]])
    done, failed, begun, late = (_by_hour(replies, at, sum) for at in range(1, 5))
    lateness = [total / 1000 / max(1, count) for total, count in zip(late, begun, strict=True)]
    latest = [most / 1000 for most in _by_hour(replies, 5, max)]
    return QueueHistory(replies[0][0], done, failed, begun, lateness, latest)


def _by_hour(replies: Sequence[list[Any]], at: int, joined: Callable[[tuple[int, ...]], int]) -> list[int]:
    """Return one number of each hour, joined from those of all shards."""
    return [joined(same) for same in zip(*(reply[at::5] for reply in replies), strict=True)]


atask_stats = twin(task_stats)
atask_history = twin(task_history)
aqueue_history = twin(queue_history)
