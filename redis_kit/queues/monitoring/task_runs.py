"""Statistics of tasks over the last hours: attempts, failures, run times and waits."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from redis_kit.core.errors import RedisFailure
from redis_kit.core.flow import Flow
from redis_kit.core.steps import CombinedBatch
from redis_kit.core.values.numbers import whole_number
from redis_kit.queues.jobs import run_counts
from redis_kit.queues.jobs.run_counts import Percentiles, TaskStats
from redis_kit.queues.queue import Queue
from redis_kit.queues.store import hourly, shards

__all__ = ["Percentiles", "TaskStats", "all_stats", "atask_stats", "latest_hours", "task_stats"]
ByTask = dict[tuple[str, str], TaskStats]  # by queue and task


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
    by_queue: dict[str, dict[str, TaskStats]] = {queue: {} for queue in names}
    counts = defaultdict[tuple[str, str], Counter[int]](Counter)
    for queue, task, blocks, _ in (yield from _read(names, hours, using)):
        counts[queue, task] += run_counts.summed(blocks)
    for (queue, task), stats in _stats(counts).items():
        if stats.runs:
            by_queue[queue][task] = stats
    return by_queue


def latest_hours(queues: Iterable[str], using: str) -> Flow[tuple[ByTask, ByTask]]:
    """Return the statistics of the present hour and of the one before, also of tasks that ran in neither of them."""
    names = yield from shards.existing(queues)
    present, before = (defaultdict[tuple[str, str], Counter[int]](Counter) for _ in range(2))
    for queue, task, blocks, hour in (yield from _read(names, 2, using)):
        since_hour = run_counts.summed(blocks, since=hour)
        present[queue, task] += since_hour
        before[queue, task] += run_counts.summed(blocks) - since_hour
    return _stats(present), _stats(before)


def _read(names: Mapping[str, Sequence[str]], hours: int, using: str) -> Flow[list[tuple[str, str, bytes, int]]]:
    """Return queue, task, blocks and the present hour, for each task of each shard."""
    places = [(queue, name) for queue, several in names.items() for name in several]
    steps = [hourly.list_runs(Queue(name, using=using).key(""), hours) for _, name in places]
    replies = (yield CombinedBatch(steps, lenient=True)) if steps else []
    return [
        (queue, task.decode("utf-8", "replace"), blocks, reply[0])
        for (queue, _), reply in zip(places, replies, strict=True)
        if not isinstance(reply, RedisFailure)
        for task, blocks in zip(reply[1::2], reply[2::2], strict=True)
    ]


def _stats(counts: Mapping[tuple[str, str], Counter[int]]) -> ByTask:
    return {key: run_counts.stats(sums) for key, sums in counts.items()}
