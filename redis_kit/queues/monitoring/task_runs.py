"""Statistics of tasks over the last hours: attempts, failures, run times and waits."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from redis_kit.core.errors import RedisFailure
from redis_kit.core.flow import Flow
from redis_kit.core.steps import CombinedBatch
from redis_kit.core.values.numbers import whole_number
from redis_kit.queues.jobs import run_counts
from redis_kit.queues.jobs.run_counts import Percentiles, TaskStats
from redis_kit.queues.queue import Queue
from redis_kit.queues.store import hourly, shards

__all__ = ["Percentiles", "TaskStats", "all_stats", "atask_stats", "task_stats"]


def task_stats(queue: str, *, hours: int = hourly.HOURS, using: str = "default") -> dict[str, TaskStats]:
    """Return the statistics of a queue's tasks by their names, of the last hours, 1 to 72, the present one among them.

    Workers count attempts that ended, and send their counts every five seconds. A percentile is off by a fifth at most.
    After 100 tasks of a queue, the others are counted together, as "". One round trip, two if the settings name SHARDS.
    Raises InvalidValue.
    """
    stats: dict[str, dict[str, TaskStats]] = Queue(queue, using=using).run_flow(all_stats([queue], hours, using))
    return stats[queue]


async def atask_stats(queue: str, *, hours: int = hourly.HOURS, using: str = "default") -> dict[str, TaskStats]:
    """See task_stats()."""
    stats: dict[str, dict[str, TaskStats]] = await Queue(queue, using=using).arun_flow(all_stats([queue], hours, using))
    return stats[queue]


def all_stats(queues: Iterable[str], hours: int, using: str) -> Flow[dict[str, dict[str, TaskStats]]]:
    """Return the statistics of several queues by task. Those of a damaged key are left out."""
    whole_number("hours", hours, (1, hourly.HOURS))
    names = yield from shards.existing(queues)
    places = [(queue, name) for queue, several in names.items() for name in several]
    steps = [hourly.list_runs(Queue(name, using=using).key(""), hours) for _, name in places]
    replies = (yield CombinedBatch(steps, lenient=True)) if steps else []
    by_queue: dict[str, dict[str, Counter[int]]] = {queue: {} for queue in names}
    for (queue, _), reply in zip(places, replies, strict=True):
        if not isinstance(reply, RedisFailure):
            _add(by_queue[queue], reply)
    return {
        queue: {task: run_counts.stats(sums) for task, sums in by_task.items()} for queue, by_task in by_queue.items()
    }


def _add(by_task: dict[str, Counter[int]], reply: Sequence[Any]) -> None:
    for task, blocks in zip(reply[1::2], reply[2::2], strict=True):
        by_task.setdefault(task.decode("utf-8", "replace"), Counter()).update(run_counts.summed(blocks))
