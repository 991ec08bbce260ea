"""The dashboard's page about queues: all queues, or the first jobs of one."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from operator import itemgetter, methodcaller
from time import time
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from redis_kit.core.errors import InvalidName, InvalidValue, KeyConflict
from redis_kit.core.flow import Flow
from redis_kit.core.gather import gather
from redis_kit.core.panels import (
    Alert,
    Bars,
    Content,
    Field,
    Figure,
    Lines,
    Link,
    Range,
    Ranges,
    Search,
    Sparkline,
    StackedBars,
    Table,
    Tile,
    first_alerts,
    label,
    range_of,
)
from redis_kit.core.text import first_of, grouped
from redis_kit.queues import limits
from redis_kit.queues.dashboard import actions, job_page
from redis_kit.queues.dashboard.actions import GroupTarget, LimitTarget, QueueTarget
from redis_kit.queues.dashboard.job_page import moment
from redis_kit.queues.dashboard.panel import MANAGE, QueueChoicePanel, hidden, job_button, target_button
from redis_kit.queues.engine import ids
from redis_kit.queues.engine.enqueue import MOST_NAMES
from redis_kit.queues.engine.feature import features
from redis_kit.queues.engine.job import JobInfo, PauseInfo, QueueCounts, State
from redis_kit.queues.limits import LimitInfo
from redis_kit.queues.queue import Queue
from redis_kit.queues.reports import job_pages, stats
from redis_kit.queues.reports.job_pages import Group
from redis_kit.queues.reports.lookup import look_up
from redis_kit.queues.reports.stats import Errors, QueueHistory, QueueStats, queue_stats, read_names, read_reports
from redis_kit.queues.reports.unknown_calls import UnknownCalls
from redis_kit.queues.settings import whole

QUEUES = _("Queues")
TASKS_IN_HINT = 5
QUEUE_BUTTONS = ("resume", "pause", "retry_dead")
GROUP_BUTTONS = ("retry_one", "retry_ten", "retry_group")
SINGLE_BUTTONS = ("retry_one", "retry_group")  # the group may have grown since
FIRST_JOBS = 20  # jobs of a state
STATES: tuple[State, ...] = ("running", "ready", "scheduled", "dead")
LIMIT_BUTTONS = ("change_limit", "reset_limit")
LATE = 300  # seconds for which a queue's next job has been due, before that is an alert
FAILING = 0.5  # share of failed attempts from which on that is an alert
ATTEMPTS = 10  # fewer make no alert, whatever share of them failed
NAMED = 3  # queues in a hint
DEAD_JOBS = _("Dead jobs: %s")
LATE_QUEUE = _("Late queue: %s")
PAUSED_QUEUE = _("Paused queue: %s")
FAILING_QUEUE = _("Failing queue: %s")
ALERTS = (DEAD_JOBS, LATE_QUEUE, PAUSED_QUEUE, FAILING_QUEUE)
FAILED = _(
    "%(failed)s of the %(attempts)s attempts of the last 30 minutes failed, the latest at most %(minutes)d min ago."
)
MINUTES = 30  # in charts of all queues
HOUR = 60  # minutes of the trend on the overview
group_button = partial(target_button, GroupTarget.parse)
WANTS = _("Concurrency, rate or both, such as 4, 10/s or 4 10/s (empty: no limit)")
TIME = _("Duration, such as 15m or 2h (empty: until resumed)")


def figures(reports: Mapping[str, QueueStats]) -> Iterator[Figure]:
    """Yield the number of jobs in each state, and how long the next one waits."""
    counts = [report.counts for report in reports.values()]
    waits = [report.wait for report in reports.values() if report.wait is not None]
    dead = sum(count.dead for count in counts)
    yield Figure(_("Ready"), sum(count.ready for count in counts))
    yield Figure(_("Scheduled"), sum(count.scheduled for count in counts))
    yield Figure(_("Running"), sum(count.running for count in counts))
    yield Figure(_("Dead"), dead, hint=_("They failed for good. Retry or delete them.") if dead else "", alarm=dead > 0)
    yield Figure(_("Oldest wait"), timedelta(seconds=max(waits)) if waits else None)
    yield from refusals(reports)
    if deserted := [name for name, report in reports.items() if report.deserted]:
        hint = _("Jobs are due in: %s") % first_of(deserted, NAMED)
        yield Figure(_("Without a worker"), len(deserted), hint=hint, alarm=True)
    if unknown := [call for report in reports.values() for call in unrunnable(report)]:
        tasks = list(dict.fromkeys(calls.task or str(_call(calls)) for calls in unknown))
        hint = _("No worker can run them: %s") % first_of(tasks, TASKS_IN_HINT)
        yield Figure(_("Jobs that no worker can run"), sum(calls.jobs for calls in unknown), hint=hint, alarm=True)
    if paused := sum(report.paused is not None for report in reports.values()):
        yield Figure(_("Paused queues"), paused, hint=_("They accept jobs, and workers claim none."))
    if (names := sum(report.shards for report in reports.values())) >= MOST_NAMES:
        full = _("No more are registered. Further queues are not shown, unless NAMES in the settings has them.")
        yield Figure(_("Names of queues"), names, hint=full, alarm=True)


def refusals(reports: Mapping[str, QueueStats]) -> Iterator[Figure]:
    """Yield for how many queues the server refuses writes, if there are any, and why."""
    if refused := [report.refused for report in reports.values() if report.refused]:
        yield Figure(_("Redis refuses writes"), len(refused), hint=refused[0], alarm=True)


def busy(report: QueueStats) -> bool:
    """Return whether a queue has jobs, or something to look at."""
    return any(report.counts) or any((report.paused, report.unknown, report.refused, any(report.failed)))


def queues(reports: Mapping[str, QueueStats], *, slug: str, title: Any = QUEUES) -> Iterator[Table]:
    """Yield the table of queues. Each name links to its queue on the page of this slug, if given."""
    yield Table(
        title,
        (_("Queue"), _("Scheduled"), _("Ready"), _("Running"), _("Dead"), _("Wait"), _("Workers"), _("Paused")),
        [
            (
                _name(name, report, slug),
                *_counts(name, report.counts, {} if slug else None),
                "" if report.wait is None else timedelta(seconds=report.wait),
                _workers(report),
                _paused(report.paused),
            )
            for name, report in reports.items()
        ],
        empty=_("No queue has been used."),
        actions=QUEUE_BUTTONS,
        values=list(reports),
        offered=[_offered(report) for report in reports.values()],
    )


def _name(name: str, report: QueueStats, slug: str) -> Any:
    cell = Link(name, slug, {"queue": name}) if slug else name
    return Lines((cell, _("%d shards") % report.shards)) if report.shards > 1 else cell


def counts(title: Any, by_queue: Mapping[str, QueueCounts], searched: Mapping[str, str]) -> Table:
    """Return the numbers of jobs by queue and state. They link to the jobs that are ``searched`` for."""
    rows = [
        (Link(name, "jobs", {"queue": name, **searched}), *_counts(name, counts, searched))
        for name, counts in by_queue.items()
    ]
    columns = (_("Queue"), _("Scheduled"), _("Ready"), _("Running"), _("Dead"))
    return Table(title, columns, rows, empty=_("No queue has been used."))


def unreadable(errors: Mapping[str, Exception]) -> Iterator[Figure | Table]:
    """Yield the errors by queue, if there are any."""
    if errors:
        yield Figure(_("Queues that can't be read"), len(errors), hint=first_of(list(errors), NAMED), alarm=True)
        rows = [(name, str(error)) for name, error in errors.items()]
        yield Table(_("Queues that can't be read"), (_("Queue"), _("Error")), rows)


def _counts(name: str, counts: QueueCounts, searched: Mapping[str, str] | None) -> Iterator[Any]:
    """Yield the numbers of jobs by state, as links to those that are searched for; None for plain numbers."""
    for state, count in counts._asdict().items():
        linked = count and searched is not None
        yield Link(count, "jobs", {"queue": name, "state": state, **(searched or {})}) if linked else count


def unknown(reports: Mapping[str, QueueStats]) -> Iterator[Table]:
    """Yield the calls that no living worker can run, if there are any."""
    rows = [
        (_call(calls), name, calls.jobs, timedelta(seconds=calls.age))
        for name, report in reports.items()
        for calls in unrunnable(report)
    ]
    if rows:
        columns = (_("Call"), _("Queue"), _("Jobs"), _("Oldest waits for"))
        yield Table(_("Calls that no worker can run"), columns, rows)


def _call(calls: UnknownCalls) -> Any:
    return calls.call if calls.version is None else _("(a message of version %d)") % calls.version


def unrunnable(report: QueueStats) -> list[UnknownCalls]:
    """Return the calls in a queue that no living worker can run."""
    return [calls for calls in report.unknown if not calls.known]


def groups(rows: Sequence[tuple[str, Group]], dead: int, *, linked: bool) -> Table:
    """Return the groups of dead jobs with their queues. There are ``dead`` jobs; the latest ones were looked at.

    If ``linked``, the task of a group links to its jobs, and the latest of them to its page.
    """
    looked_at = sum(group.jobs for _name, group in rows)
    latest = _("Dead jobs by task and error, the latest %s") % grouped(looked_at)
    return Table.of(
        latest if dead > looked_at else _("Dead jobs by task and error"),
        rows,
        [
            (_("Task"), lambda row: Lines((_task(*row) if linked else row[1].cause.task or _("no task"), row[0]))),
            (_("Error"), lambda row: job_page.error(row[1].cause.error, row[1].latest.reason)),
            (_("Jobs"), lambda row: row[1].jobs),
            (_("First failure"), lambda row: moment(row[1].first.died or 0)),
            (_("Last failure"), lambda row: _last(*row, linked=linked)),
        ],
        actions=GROUP_BUTTONS,
        offered=[GROUP_BUTTONS if group.jobs > 1 else SINGLE_BUTTONS for _name, group in rows],
        values=[GroupTarget(name, *group.cause).value for name, group in rows],
    )


def _task(queue: str, group: Group) -> Link:
    search = {"queue": queue, "state": "dead", "task": group.cause.task, "error": group.cause.error}
    return Link(group.cause.task or _("no task"), "jobs", search)


def _last(queue: str, group: Group, *, linked: bool) -> Any:
    last = moment(group.latest.died or 0)
    return Lines((last, job_page.link(queue, group.latest.id))) if linked else last


def first_jobs(queue: str, by_state: Sequence[list[JobInfo]], counts: QueueCounts) -> Iterator[Table]:
    """Yield the first jobs of a queue, running ones before waiting ones."""
    for state, jobs in zip(STATES, by_state, strict=True):
        if jobs:
            # The jobs are read by one call and counted by another, so some may have left between.
            of = {"number": len(jobs), "most": f"{max(getattr(counts, state), len(jobs)):,}"}
            title = f"{job_page.title(queue, state)}: {_('%(number)s of %(most)s') % of}"
            yield Table(title, job_page.COLUMNS[state], [job_page.row(queue, info) for info in jobs])
    if not any(by_state):
        yield Table(job_page.FIRST % queue, (), [], empty=_("The queue has no jobs."))


def _offered(report: QueueStats) -> tuple[str, ...]:
    """Return the buttons of a queue. "Pause" on a paused queue changes the end of the pause."""
    fitting = {"resume": report.paused, "pause": True, "retry_dead": report.counts.dead}
    return tuple(name for name in QUEUE_BUTTONS if fitting[name])


def _paused(pause: PauseInfo | None) -> Any:
    if pause is None:
        return ""
    ends = None if pause.ends_in is None else _day_and_minute(moment(time() + pause.ends_in))
    end = _("until %s") % ends if ends else _("until resumed")
    return Lines((end, _("since %s") % _day_and_minute(moment(pause.since))))


def _day_and_minute(when: datetime | str) -> str:
    return when if isinstance(when, str) else timezone.localtime(when).strftime("%Y-%m-%d %H:%M")


def _workers(report: QueueStats) -> Any:
    if not report.quiet:
        return report.claiming
    return _("%(claiming)d (%(quiet)d quiet)") % {"claiming": report.claiming, "quiet": report.quiet}


def limits_table(queue: str, listed: list[LimitInfo]) -> Iterator[Table]:
    """Yield the limits of a queue, if it has any."""
    if not listed:
        return
    yield Table.of(
        _("Limits of %s") % queue,
        listed,
        [
            (_("Limit"), lambda info: info.name),
            (_("Concurrency"), lambda info: info.concurrency),
            (_("Rate"), lambda info: info.rate),
            (_("Running"), lambda info: info.running),
            (_("Waiting lanes"), lambda info: info.waiting),
            (_("Next start in"), lambda info: timedelta(seconds=info.next_start) if info.next_start else None),
            (_("Changed"), lambda info: _("yes") if info.changed else ""),
        ],
        actions=LIMIT_BUTTONS,
        values=[LimitTarget(queue, info.name).value for info in listed],
        offered=[LIMIT_BUTTONS if info.changed else LIMIT_BUTTONS[:1] for info in listed],
    )


def alerts(reports: Mapping[str, QueueStats], *, linked: bool) -> Iterator[Alert]:
    """Yield the queues with dead jobs, the late ones, those paused though jobs are due, and those whose attempts fail.

    Of each kind the three worst ones and the number of the others. Queues without a worker are a figure.
    """
    by_title: dict[Any, list[tuple[float, Alert]]] = {title: [] for title in ALERTS}
    for name, report in reports.items():
        for title, measure, value, hint in _conditions(report):
            by_title[title].append((measure, Alert(title % name, value, hint, {"queue": name} if linked else {})))
    for found in by_title.values():
        yield from first_alerts([alert for _, alert in sorted(found, key=itemgetter(0), reverse=True)])


def _conditions(report: QueueStats) -> Iterator[tuple[Any, float, Any, Any]]:
    """Yield what needs attention in a queue: the title of an alert, how bad it is, the same for people, and a hint."""
    if dead := report.counts.dead:
        yield DEAD_JOBS, dead, dead, _("They failed for good. Retry or delete them.")
    wait = report.wait or 0.0
    if wait > LATE and report.paused:
        about = _("It is paused, and its next job has been due for this time.")
        yield PAUSED_QUEUE, wait, timedelta(seconds=wait), about
    elif wait > LATE and not report.deserted:
        yield LATE_QUEUE, wait, timedelta(seconds=wait), _("The next job has been due for this time.")
    by_minute = report.failed[-MINUTES:]
    failed = sum(by_minute)
    attempts = failed + sum(report.done[-MINUTES:])
    if attempts >= ATTEMPTS and failed / attempts >= FAILING:
        minutes = next(ago for ago, count in enumerate(reversed(by_minute), 1) if count)
        hint = FAILED % {"failed": grouped(failed), "attempts": grouped(attempts), "minutes": minutes}
        yield FAILING_QUEUE, failed / attempts, f"{100 * failed / attempts:.0f} %", hint


def charts_of_all(reports: Mapping[str, QueueStats]) -> Iterator[Bars | StackedBars]:
    """Yield jobs by state, and by minute the attempts that ended and how late others began, if there are queues."""
    if not reports:
        return
    total = stats.merged(list(reports.values()))
    if any(total.counts):
        labels = (_("Scheduled"), _("Ready"), _("Running"), _("Dead"))
        yield Bars(_("Jobs by state"), list(zip(labels, total.counts, strict=True)))
    minutes = [label(total.minute - MINUTES + 1 + place, day=False) for place in range(MINUTES)]
    parts = [(_("Jobs done"), total.done), (_("Failed attempts"), total.failed)]
    yield StackedBars(_("Attempts that ended, per minute"), minutes, parts)
    yield _lateness(_("How late attempts began, on average"), minutes, total.lateness)
    yield _lateness(_("How late attempts began, at most"), minutes, total.latest)


def _lateness(title: Any, labels: Sequence[str], seconds: Iterable[float]) -> Bars:
    return Bars(title, [(label, timedelta(seconds=late)) for label, late in zip(labels, seconds, strict=True)])


def trend(reports: Mapping[str, QueueStats]) -> Sparkline | None:
    """Return the jobs done in each minute that was read; None without queues."""
    if not reports:
        return None
    done = stats.merged(list(reports.values())).done
    ended = ngettext("%(count)s job done in an hour", "%(count)s jobs done in an hour", sum(done))
    return Sparkline(ended % {"count": grouped(sum(done))}, done)


def read_range(queue: str, span: Range) -> Flow[tuple[QueueStats, QueueStats | QueueHistory]]:
    """Return how a queue is doing, and its numbers in a range."""
    if not span.by_hour:
        report = (yield from read_reports([queue], span.minutes, "default"))[queue]
        return report, report
    both: list[Flow[Any]] = [read_reports([queue], 1, "default"), hours(queue, span.hours)]
    reports, numbers = yield from gather(both)
    return reports[queue], numbers


def hours(queue: str, count: int) -> Flow[QueueHistory]:
    """Return the numbers of a queue by hour, as a feature has them; without one they are 0."""
    for feature in features():
        flow: Flow[QueueHistory] | None = feature.hours(queue, count)
        if flow:
            return (yield from flow)
    jobs, times = [0] * count, [0.0] * count
    return QueueHistory(int(timezone.now().timestamp() // 3600), jobs, jobs, jobs, times, times)


def charts(queue: str, numbers: QueueStats | QueueHistory, span: Range) -> Iterator[Ranges | StackedBars | Bars]:
    """Yield the choice of a range, jobs done and failed attempts in it, and how late attempts began."""
    labels = span.labels(numbers.minute)
    done, failed, latest = (span.bars(each, numbers.minute) for each in (numbers.done, numbers.failed, numbers.latest))
    yield span.choice("queues", {"queue": queue})
    parts = [(_("Jobs done"), list(map(sum, done))), (_("Failed attempts"), list(map(sum, failed)))]
    yield StackedBars(_("Attempts that ended"), labels, parts)
    yield _lateness(_("How late attempts began, at most"), labels, map(max, latest))


def of_features() -> Iterator[Figure]:
    """Yield the figures of features about all queues."""
    for feature in features():
        yield from feature.queue_figures()


def _read_stats() -> Flow[Any]:
    errors: Errors = {}
    names = yield from read_names()
    return (yield from read_reports(names, HOUR, "default", errors)), errors


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

        Two round trips, and one more if there are dead jobs; for one queue two.
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
        ready, _scheduled, running, _dead, wait, *rest = figures(reports)
        tile = Tile.of([ready, running, wait, *rest, *of_features(), *unreadable(errors)], trend(reports))
        urgent = alerts(reports, linked=self.viewer.may(MANAGE))  # of dead jobs too, by queue
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
        primitive, span = Queue(queue), range_of(self.asked("range"))
        first = [job_pages.first_jobs(primitive, state, FIRST_JOBS) for state in STATES]
        flows: list[Flow[Any]] = [limits.listed(primitive), *first, read_range(queue, span)]
        listed, *by_state, (report, numbers) = primitive.run_flow(gather(flows))
        yield from refusals({queue: report})
        yield from queues({queue: report}, slug="jobs", title=_("Queue %s") % queue)
        yield from charts(queue, numbers, span)
        yield from limits_table(queue, listed)
        yield from first_jobs(queue, by_state, report.counts)

    def _all(self, names: list[str]) -> Iterator[Content]:
        errors: Errors = {}
        reports = queue_stats(names, minutes=MINUTES, errors=errors)
        yield from figures(reports)
        yield from of_features()
        dead = {name: report.counts.dead for name, report in reports.items()}
        rows = job_pages.dead_by_cause([name for name, count in dead.items() if count], errors)
        yield from unreadable(errors)
        listed, pages = self.page_of(reports, busy=busy)
        yield from queues(listed, slug=self.slug if self.viewer.may(MANAGE) else "")
        yield from pages
        yield from unknown(reports)
        yield from charts_of_all(reports)
        if rows:
            yield groups(rows, sum(dead.values()), linked=self.viewer.may(MANAGE))

    pause = target_button(QueueTarget, QueueTarget.pause, _("Pause"), wants=TIME, explained="pause")
    resume = target_button(QueueTarget, QueueTarget.resume, _("Resume"))
    retry_dead = target_button(
        QueueTarget, QueueTarget.retry_dead, _("Retry dead jobs"), confirm=True, explained="retry_dead", harmless=True
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
