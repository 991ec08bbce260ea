"""The dashboard's page of tasks: how often they ran and failed, how long they took and waited."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from operator import attrgetter
from typing import Any

from django.utils.translation import gettext_lazy as _

from redis_kit.core.panels import (
    MOST_ROWS,
    Content,
    Estimate,
    Field,
    Figure,
    LineChart,
    Link,
    Ranges,
    Search,
    StackedBars,
    Table,
    label,
)
from redis_kit.core.text import grouped
from redis_kit.queues.dashboard.panel import MANAGE, QueueChoicePanel
from redis_kit.queues.features.statistics.counts import TaskStats
from redis_kit.queues.features.statistics.inspection import TaskHistory, stored_runs

SLUG = "tasks"
RANGES = ((_("This hour"), 1), (_("6 hours"), 6), (_("24 hours"), 24), (_("72 hours"), 72))
USUAL = 24  # hours
TIMES = (_("Run time p50"), _("Run time p95"), _("Run time p99"), _("Wait p50"), _("Wait p95"), _("Wait p99"))


class TasksPanel(QueueChoicePanel):
    """The tasks of all queues or of one, over the last hours; one task also by hour."""

    slug = SLUG
    title = _("Tasks")
    _tasks: Sequence[str] = ()  # those that ran

    def heading(self) -> Any:
        """Return the name of the chosen task, or the title."""
        return self.asked("task") or self.title

    def search(self) -> Search:
        """Return the choice of a queue and a task."""
        task = Field("task", _("Task"), lambda: self.choices("task", self._tasks), any=_("All tasks"), optional=True)
        return Search(_("Show"), (self.queue_field, task))

    def content(self) -> Iterator[Content]:
        """Yield figures, and the tasks, the one first that took the most time; one task also by hour.

        Two round trips, three if the settings name SHARDS.
        """
        queue, task, hours = self.queue(), self.asked("task"), self._hours
        runs = stored_runs([queue] if queue else self.names[:MOST_ROWS], hours)
        self._tasks = sorted({name for _queue, name in runs.blocks} - {""})
        stats = [(*key, each) for key, each in runs.stats(task).items()]
        stats.sort(key=lambda row: -row[2].total)
        attempts, failures = (sum(getattr(each, name) for *_, each in stats) for name in ("runs", "failures"))
        counts = {"count": MOST_ROWS, "total": grouped(len(self.names))}
        part = _("in %(count)s of %(total)s queues: choose one to see others") % counts
        yield Figure(_("Attempts"), attempts, hint=part if len(self.names) > MOST_ROWS and not queue else "")
        yield Figure(_("Failed"), failures, hint=f"{100 * failures / attempts:.1f} %" if attempts else "")
        yield Ranges(SLUG, RANGES, hours, {name: text for name in ("queue", "task") if (text := self.asked(name))})
        yield self._table(stats, queue, task)
        if stats and task:
            yield from charts(runs.history(task, hours))

    def _table(self, stats: Sequence[tuple[str, str, TaskStats]], queue: str, task: str) -> Table:
        return Table(
            _("Tasks of %s") % queue if queue else _("Tasks"),
            (_("Task"), *(() if queue else (_("Queue"),)), _("Attempts"), _("Failed"), _("In all"), *TIMES),
            [self._row(*row, several=not queue, linked=not task) for row in stats],
            empty=_("No task ran in this time."),
        )

    def _row(self, queue: str, task: str, stats: TaskStats, *, several: bool, linked: bool) -> tuple[Any, ...]:
        times = map(_estimate, (*stats.run_time, *stats.wait))
        name: Any = task or _("other tasks")
        by_hour = Link(name, SLUG, {"queue": queue, "task": task, "range": str(self._hours)})
        return (
            by_hour if linked and task else name,
            *((queue,) if several else ()),
            self._jobs(stats.runs, queue, "done", task),
            self._jobs(stats.failures, queue, "dead", task),
            timedelta(seconds=stats.total),
            *times,
        )

    def _jobs(self, number: int, queue: str, state: str, task: str) -> Any:
        """Return a number that links to jobs of the task in a state, if the viewer may see them."""
        linked = number and task and self.viewer.may(MANAGE)
        return Link(number, "jobs", {"queue": queue, "state": state, "task": task}) if linked else number

    @property
    def _hours(self) -> int:
        range_name = self.asked("range")
        return next((hours for _label, hours in RANGES if str(hours) == range_name), USUAL)


def charts(by_hour: TaskHistory) -> Iterator[Content]:
    """Yield how a task did in each hour: attempts, run times and waits."""
    hours = len(by_hour.stats)
    labels = [label(60 * hour, day=hours > 24) for hour in range(by_hour.hour - hours + 1, by_hour.hour + 1)]
    succeeded = [each.runs - each.failures for each in by_hour.stats]
    failed = [each.failures for each in by_hour.stats]
    yield StackedBars(_("Attempts by hour"), labels, [(_("Succeeded"), succeeded), (_("Failed"), failed)])
    for title, name in ((_("Run time by hour"), "run_time"), (_("Wait by hour"), "wait")):
        times = [getattr(each, name) for each in by_hour.stats]
        lines = [(share, list(map(_estimate, map(attrgetter(share), times)))) for share in ("p95", "p50")]
        yield LineChart(title, labels, lines)


def _estimate(seconds: float | None) -> Estimate | None:
    return None if seconds is None else Estimate(seconds)
