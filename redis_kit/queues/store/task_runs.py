"""The scripts that count attempts of tasks, and the arguments that they take."""

from collections.abc import Mapping

from redis_kit.core.scripts import ScriptCall
from redis_kit.queues.jobs import run_counts
from redis_kit.queues.store.calls import QueueScript

HOURS = 72  # for which counts are stored
MOST_TASKS = 100  # of a queue
COUNT_RUNS, LIST_RUNS = QueueScript("count_runs"), QueueScript("list_runs")


def count_runs(base: str, counts: Mapping[str, Mapping[int, float]]) -> ScriptCall:
    """Return the step that adds counts of attempts, by task, to those of the present hour."""
    parts = [part for task, sums in counts.items() for part in (task, run_counts.dumps(sums))]
    return COUNT_RUNS(base, HOURS, MOST_TASKS, *parts)


def list_runs(base: str, hours: int) -> ScriptCall:
    """Return the step that reads the counts of attempts by task."""
    return LIST_RUNS(base, hours)
