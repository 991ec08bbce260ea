"""The dashboard's panel of queues."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from operator import methodcaller
from types import MappingProxyType
from typing import Any

from django.utils.translation import gettext_lazy as _

from redis_kit.core.errors import InvalidName, InvalidValue, KeyConflict, RedisKitError
from redis_kit.core.flow import Flow
from redis_kit.core.panels import (
    MOST_ROWS,
    Content,
    Field,
    Figure,
    Pages,
    Panel,
    Search,
    Table,
    Tile,
    action,
    range_of,
    target_action,
)
from redis_kit.queues.dashboard import actions, job_page, queues_page
from redis_kit.queues.dashboard.actions import GroupTarget, JobSelection, LimitTarget, QueueTarget
from redis_kit.queues.engine import ids
from redis_kit.queues.engine.enqueue import MOST_NAMES
from redis_kit.queues.engine.feature import features
from redis_kit.queues.reports.failures import inspect
from redis_kit.queues.reports.lookup import look_up
from redis_kit.queues.reports.stats import Errors, queue_names, queue_stats, read_names, read_reports
from redis_kit.queues.settings import whole

HOUR = 60  # minutes of the trend on the overview
MANAGE = "redis_kit.manage_queues"
button = partial(action, permission=MANAGE, asks=None)
target_button = partial(target_action, permission=MANAGE)
group_button = partial(target_button, GroupTarget.parse)
WANTS = _("Concurrency, rate or both, such as 4, 10/s or 4 10/s (empty: no limit)")
TIME = _("Duration, such as 15m or 2h (empty: until resumed)")


def job_button(action: str, label: Any, *, confirm: bool = True, **options: Any) -> Any:
    """Return a button for jobs. To be confirmed, it tells what will happen."""
    run = methodcaller("change", action)
    explained = action if confirm else ""
    return target_button(JobSelection.parse, run, label, confirm=confirm, explained=explained, **options)


def of_features() -> Iterator[Figure]:
    """Yield the figures of features about all queues."""
    for feature in features():
        yield from feature.queue_figures()


def hidden() -> Table:
    """Return what a viewer is told who follows a link and may not manage queues."""
    text = _("The pages of single queues, jobs and workflows need the permission to manage queues.")
    return Table(_("Looked up"), (), [], empty=text)


def _read_stats() -> Flow[Any]:
    errors: Errors = {}
    names = yield from read_names()
    return (yield from read_reports(names, HOUR, "default", errors)), errors


class QueueChoicePanel(Panel):
    """Its search has the field ``queue``. Without a choice it is about all queues."""

    def summary(self) -> tuple[Content, ...]:
        """Return nothing: the page of queues has a summary."""
        return ()

    def queue(self) -> str:
        """Return the name of the chosen queue, "" for all. Raises InvalidValue for an unknown one."""
        queue = self.asked("queue")
        if queue and queue not in self.names:
            raise InvalidValue(actions.unknown_queue(queue, self.names))
        return queue

    def choices(self, field: str, names: Sequence[str]) -> list[str]:
        """Return the first names, and the one that the viewer chose, as far as a form can show them."""
        chosen = [name for name in names if name == self.asked(field)]
        return [name for name in dict.fromkeys([*names[:MOST_NAMES], *chosen]) if name.isprintable()]

    def page_of(
        self,
        by_queue: Mapping[str, Any],
        *,
        busy: Callable[[Any], bool],
        asked: Mapping[str, str] = MappingProxyType({}),
    ) -> tuple[dict[str, Any], Iterator[Pages]]:
        """Return the queues of this page, and the links to the others. With several pages, busy queues come first."""
        number, total = self.viewer.page, len(by_queue)
        names = sorted(by_queue, key=lambda name: total > MOST_ROWS and not busy(by_queue[name]))
        shown = names[(number - 1) * MOST_ROWS : number * MOST_ROWS]
        return {name: by_queue[name] for name in shown}, Pages.of(self.slug, number, total, asked)

    @property
    def queue_field(self) -> Field:
        """Return the field of the search."""
        return Field("queue", _("Queue"), lambda: self.choices("queue", self.names), any=_("All queues"), optional=True)

    @property
    def names(self) -> list[str]:
        """Return the names of all queues. One round trip for the whole page, also if it fails."""
        if isinstance(self._names, RedisKitError):
            raise self._names
        return self._names

    @cached_property
    def _names(self) -> list[str] | RedisKitError:
        try:
            return queue_names()
        except RedisKitError as error:
            return error  # content() raises it; the form above does not ask again


class QueuesPanel(QueueChoicePanel):
    """The queues: their sizes, waiting times, the last half hour, and dead jobs by cause."""

    slug = "queues"
    title = _("Queues")

    def heading(self) -> Any:
        """Return the job or the queue that is looked up, or the title."""
        if self.viewer.may(MANAGE):
            if id := self.asked("id"):
                return _("Job %s") % id
            if queue := self.asked("queue"):
                return _("Queue %s") % queue
        return self.title

    def search(self) -> Search | None:
        """Return the form to look up a job, if the viewer may manage queues: the page shows the job's arguments."""
        if not self.viewer.may(MANAGE):
            return None
        queue = Field("queue", _("Queue"), lambda: self.choices("queue", self.names), any=_("Any queue"), optional=True)
        id = Field("id", _("Id of a job (empty: the jobs of the queue)"), optional=True)
        return Search(_("Look up"), (queue, id))

    def content(self) -> Iterator[Content]:
        """Yield the job that was looked up, else all queues: figures, tables and numbers per minute.

        Two round trips, and one more if there are dead jobs; for one queue three.
        """
        names = self.names
        if self.viewer.may(MANAGE) and ("queue" in self.viewer.asked or "id" in self.viewer.asked):
            try:
                yield from self._looked_up(names, self.asked("queue"), self.asked("id"))
            except (InvalidName, InvalidValue, KeyConflict) as error:
                yield Table(_("Looked up"), (), [], empty=str(error))
            if self.asked("queue") or self.asked("id"):
                return
        elif self.asked("queue") or self.asked("id"):
            yield hidden()
        yield from self._all(names)

    def reads(self) -> dict[str, Flow[Any]]:
        """Return the numbers of all queues. Two round trips."""
        return {"default": _read_stats()}

    def tile(self, replies: Mapping[str, Any]) -> Tile | None:
        """Return the jobs that wait and run, the longest wait, and the jobs done in the last hour."""
        reports, errors = replies["default"]
        ready, _scheduled, running, _dead, wait, *rest = queues_page.figures(reports)
        figures = [ready, running, wait, *rest, *of_features(), *queues_page.unreadable(errors)]
        tile = Tile.of(figures, queues_page.trend(reports))
        urgent = queues_page.alerts(reports, linked=self.viewer.may(MANAGE))  # of dead jobs too, by queue
        return replace(tile, alerts=[*tile.alerts, *urgent]) if tile else None

    def _looked_up(self, names: list[str], queue: str, id: str) -> Iterator[Content]:
        unknown = actions.unknown_queue(queue, names)
        if not id and queue in names:
            yield from self._one_queue(queue)
            return
        if not id:
            hint = unknown if queue else _("Choose a queue or enter the id of a job.")
            yield Table(_("Looked up"), (), [], empty=hint)
            return
        queue_of_id = whole(ids.queue_of(id))
        home_queue = queue or queue_of_id
        queues = [home_queue]
        if queue_of_id in names and queue_of_id != home_queue and "." in id:
            queues.append(queue_of_id)
        home, details = look_up(queues, id)
        if details is None and (in_full := ids.in_full(id, home_queue)[-1]) != id:
            home, details = look_up([home_queue], in_full)
            id = in_full if details else id
        if details is None and queue and queue not in names:
            yield Table(_("Looked up"), (), [], empty=unknown)
            return
        yield from job_page.content((home, id), details)

    def _one_queue(self, queue: str) -> Iterator[Content]:
        listed, by_state = queues_page.read_first(queue)
        span = range_of(self.asked("range"))
        report, numbers = queues_page.read_range(queue, span)
        yield from queues_page.refusals({queue: report})
        yield from queues_page.queues({queue: report}, slug="jobs", title=_("Queue %s") % queue)
        yield from queues_page.charts(queue, numbers, span)
        yield from queues_page.limits_table(queue, listed)
        yield from queues_page.first_jobs(queue, by_state, report.counts)

    def _all(self, names: list[str]) -> Iterator[Content]:
        errors: Errors = {}
        reports = queue_stats(names, minutes=queues_page.MINUTES, errors=errors)
        yield from queues_page.figures(reports)
        yield from of_features()
        dead = {name: report.counts.dead for name, report in reports.items()}
        findings = inspect([name for name, count in dead.items() if count], errors)
        yield from queues_page.unreadable(errors)
        listed, pages = self.page_of(reports, busy=queues_page.busy)
        yield from queues_page.queues(listed, slug=self.slug if self.viewer.may(MANAGE) else "")
        yield from pages
        yield from queues_page.unknown(reports)
        yield from queues_page.charts_of_all(reports)
        if findings.groups:
            may_manage = self.viewer.may(MANAGE)
            yield queues_page.groups(findings.groups, sum(dead.values()), findings.looked_at, linked=may_manage)

    pause = target_button(QueueTarget, QueueTarget.pause, _("Pause"), wants=TIME, explained="pause")
    resume = target_button(QueueTarget, QueueTarget.resume, _("Resume"))
    retry_dead = target_button(
        QueueTarget,
        QueueTarget.retry_dead,
        _("Retry dead jobs"),
        confirm=True,
        explained="retry_dead",
        harmless=True,
    )
    change_limit = target_button(LimitTarget.parse, LimitTarget.change, _("Change"), wants=WANTS)
    reset_limit = target_button(LimitTarget.parse, LimitTarget.reset, _("Reset"))
    retry = job_button("retry", _("Retry"), confirm=False)
    run_now = job_button("run_now", _("Run now"), confirm=False)
    cancel = job_button("cancel", _("Cancel the job"))
    delete = job_button("delete", _("Delete"))
    retry_one = group_button(methodcaller("retry", 1), _("Retry 1"))
    retry_ten = group_button(methodcaller("retry", 10), _("Retry 10"))
    retry_group = group_button(GroupTarget.retry, _("Retry all"), confirm=True, explained="retry", harmless=True)
