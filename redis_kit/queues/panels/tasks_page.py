"""The dashboard's page of tasks: how often they ran and failed, how long they took and waited."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext_lazy as _

from redis_kit.core.panels import MOST_ROWS, Bars, Content, Field, Figure, Link, Search, Table
from redis_kit.queues.panels.one_queue import OneQueuePanel
from redis_kit.queues.panels.panels import MANAGE

if TYPE_CHECKING:
    from redis_kit.queues.jobs.run_counts import TaskStats

SLUG = "tasks"
HOURS = ("1", "6", "24", "72")
PERIODS = (_("This hour"), _("6 hours"), _("24 hours"), _("72 hours"))
SHOWN = 20  # tasks in the chart


class TasksPanel(OneQueuePanel):
    """The tasks of one queue, over the last hours."""

    slug = SLUG
    title = _("Tasks")

    def search(self) -> Search:
        """Return the choice of a queue and a time."""
        period = Field("hours", _("Time"), HOURS, labels=PERIODS, any=_("72 hours"))
        return Search(_("Show"), (self.queue_field, period))

    def content(self) -> Iterator[Content]:
        """Yield figures, and the tasks of one queue, the one first that took the most time. Two round trips.

        With SHARDS three.
        """
        from redis_kit.queues.monitoring.task_runs import task_stats

        queue, asked = self.queue(), self.asked("hours")
        stats = task_stats(queue, hours=int(asked) if asked in HOURS else int(HOURS[-1]))
        by_time = sorted(stats.items(), key=lambda pair: -pair[1].total)
        runs, failures = (sum(getattr(each, name) for each in stats.values()) for name in ("runs", "failures"))
        yield Figure(_("Attempts"), runs)
        yield Figure(_("Failed"), failures, hint=f"{100 * failures / runs:.1f} %" if runs else "")
        yield Table(
            _("Tasks of %s") % queue,
            (
                *(_("Task"), _("Attempts"), _("Failed"), _("In all")),
                *(_("Run time p50"), _("Run time p95"), _("Run time p99")),
                *(_("Wait p50"), _("Wait p95"), _("Wait p99")),
            ),
            [self._row(queue, task, each) for task, each in by_time[:MOST_ROWS]],
            empty=_("No task of this queue ran in this time."),
        )
        if by_time:
            labels = _labels([task for task, _stats in by_time[:SHOWN]])
            bars = [(label, each.total) for label, (_task, each) in zip(labels, by_time, strict=False)]
            yield Bars(_("Time that tasks took (s)"), bars)

    def _row(self, queue: str, task: str, stats: "TaskStats") -> tuple[Any, ...]:
        times = [None if each is None else timedelta(seconds=each) for each in (*stats.run_time, *stats.wait)]
        name: Any = task or _("other tasks")
        if task and self.viewer.may(MANAGE):
            name = Link(task, "jobs", {"queue": queue, "state": "dead" if stats.failures else "done", "task": task})
        return name, stats.runs, stats.failures, timedelta(seconds=stats.total), *times


def _labels(tasks: Sequence[str]) -> list[Any]:
    """Return the names of functions, as a chart has little room for labels; the whole paths if two are the same."""
    names = [task.rpartition(".")[2] for task in tasks]
    return [name or _("other tasks") for name in (names if len(set(names)) == len(names) else tasks)]
