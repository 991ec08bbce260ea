"""``manage.py rk_queues --tasks``: how often tasks ran, and for how long."""

from typing import Any

from redis_kit.core import terminal
from redis_kit.core.terminal import aligned, cut, duration, estimate
from redis_kit.core.text import clean
from redis_kit.queues.commands.base import QueueCommand
from redis_kit.queues.features.statistics.counts import HOURS, TaskStats
from redis_kit.queues.features.statistics.inspection import stored_runs

NAME = "tasks"
TASK_COLUMNS = (
    *("QUEUE", "TASK", "ATTEMPTS", "FAILED", "IN ALL"),
    *("RUN P50", "P95", "P99", "WAIT P50", "P95", "P99"),
)


def add_argument(views: Any) -> None:
    """Add the option."""
    views.add_argument(
        "--tasks",
        type=terminal.whole(1, HOURS),
        nargs="?",
        const=HOURS,
        metavar="HOURS",
        help=f"show the tasks of the last hours in place of the queues, 1 to {HOURS} (default: {HOURS})",
    )


def show(command: QueueCommand, names: list[str], hours: int, using: str, *, as_json: bool) -> None:
    """Show the tasks of queues."""
    stats = stored_runs(names, hours, using).stats()
    by_time = sorted(stats.items(), key=lambda pair: (names.index(pair[0][0]), -pair[1].total))
    if as_json:
        command.write_json([{"queue": of, "task": task, **_plain_task(each)} for (of, task), each in by_time])
    else:
        table = [TASK_COLUMNS, *(_task_row(*key, each) for key, each in by_time)]
        lines = aligned(table, right=range(2, len(TASK_COLUMNS)))
        command.write_lines(lines if by_time else ["No task ran in this time."])


def _task_row(queue: str, task: str, stats: TaskStats) -> tuple[str, ...]:
    times = ["" if each is None else estimate(each) for each in (*stats.run_time, *stats.wait)]
    counts = f"{stats.runs:,}", f"{stats.failures:,}", duration(stats.total)
    return cut(clean(queue)), cut(clean(task)) or "(others)", *counts, *times


def _plain_task(stats: TaskStats) -> dict[str, Any]:
    numbers = {"attempts": stats.runs, "failed": stats.failures, "seconds": stats.total}
    return {**numbers, "run_time": stats.run_time._asdict(), "wait": stats.wait._asdict()}
