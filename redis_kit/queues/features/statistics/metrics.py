"""The metrics of tasks."""

from collections import Counter
from collections.abc import Collection, Iterator
from math import inf
from time import time

from redis_kit.core.flow import Flow
from redis_kit.core.metrics.families import Histogram, Metric, MetricSource, Sample, seen_to_restart
from redis_kit.queues.features.statistics import counts as counts_of
from redis_kit.queues.features.statistics.counts import TaskStats
from redis_kit.queues.features.statistics.inspection import StoredRuns, read_runs
from redis_kit.queues.reports.stats import read_names

RUN_TIME = Metric(
    "redis_kit_task_run_seconds",
    "histogram",
    "Seconds that attempts of a task took, failed ones among them.",
    ("queue", "task"),
)
TASK_FAILED = Metric(
    "redis_kit_task_attempts_failed_total", "counter", "Attempts of a task that failed.", ("queue", "task")
)
BOUNDS = [4**power / 1000 for power in range(11)]  # seconds: 1 ms to 17 minutes, each at the end of a class
NO_RUNS = counts_of.stats(Counter())


class TaskMetrics(MetricSource):
    """How often tasks ran, and for how long."""

    metrics = (RUN_TIME, TASK_FAILED)

    def read(self, using: str, limit: int) -> Flow[list[Sample]]:
        """Return the samples. Two round trips."""
        names = yield from read_names()
        runs = yield from read_runs(names, 2, using)
        first = 60 * runs.hour  # by the clock of the server
        minute = min(max(first, int(time() // 60)), first + 59)
        return list(samples(runs, set(names[:limit]), minute, limit))


def samples(runs: StoredRuns, names: Collection[str], minute: int, limit: int) -> Iterator[Sample]:
    """Yield the samples of tasks; those that took the most time if there are more of them than ``limit``."""
    listed = []
    for key, stored in runs.blocks.items():
        if key[0] in names:
            hours = counts_of.by_hour(stored)
            listed.append((key, counts_of.stats(hours[runs.hour]), counts_of.stats(hours[runs.hour - 1])))
    for key, stats, before in sorted(listed, key=lambda each: -(each[1].total + each[2].total))[:limit]:
        histogram = _histogram(stats if seen_to_restart(minute, stats.runs, before.runs) else NO_RUNS)
        yield RUN_TIME.sample(histogram, *key)
        yield TASK_FAILED.sample(seen_to_restart(minute, stats.failures, before.failures), *key)


def _histogram(stats: TaskStats) -> Histogram:
    counts = [(end, sum(stats.classes[: counts_of.class_of(end) + 1])) for end in BOUNDS]
    return Histogram((*counts, (inf, stats.runs)), stats.total)
