"""What the dashboard's page about queues is made of."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from operator import mul
from typing import TYPE_CHECKING, Any

from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from redis_kit.core.panels import MOST_ROWS, Bars, Figure, Lines, Link, Table
from redis_kit.core.terminal import duration
from redis_kit.queues.panels.actions import GroupTarget
from redis_kit.queues.panels.job_page import moment

if TYPE_CHECKING:
    from redis_kit.queues.jobs.job import Pause
    from redis_kit.queues.monitoring.inspection import Findings
    from redis_kit.queues.monitoring.stats import Report
    from redis_kit.queues.store.unknown import UnknownCalls

MINUTES = 30
NAMED = 5  # tasks in a hint
OF_QUEUE = ("resume", "pause", "requeue_dead")
OF_GROUP = ("requeue_one", "requeue_sample", "requeue_group")
OF_GROUP_OF_ONE = ("requeue_one", "requeue_group")  # which may have got more meanwhile


def figures(reports: Mapping[str, "Report"]) -> Iterator[Figure]:
    """Yield how many jobs are in each state, and how long the next one waits."""
    counts = [report.counts for report in reports.values()]
    waits = [report.wait for report in reports.values() if report.wait is not None]
    dead = sum(count.dead for count in counts)
    yield Figure(_("Ready"), sum(count.ready for count in counts))
    yield Figure(_("Scheduled"), sum(count.scheduled for count in counts))
    yield Figure(_("Running"), sum(count.running for count in counts))
    yield Figure(_("Dead"), dead, hint=_("Jobs that used up their attempts."), alarm=dead > 0)
    yield Figure(_("Oldest wait"), duration(max(waits, default=0.0)))
    if deserted := [name for name, report in reports.items() if report.deserted]:
        hint = _("Jobs are due there: %s") % ", ".join(deserted)
        yield Figure(_("Without a worker"), len(deserted), hint=hint, alarm=True)
    if unknown := [call for report in reports.values() for call in nobodys(report)]:
        tasks = list(dict.fromkeys(one.task or one.call for one in unknown))
        hint = _("No living worker can run them: %s") % ", ".join([*tasks[:NAMED], *["..."] * (len(tasks) > NAMED)])
        yield Figure(_("Jobs that no worker can run"), sum(one.jobs for one in unknown), hint=hint, alarm=True)
    if paused := sum(report.paused is not None for report in reports.values()):
        yield Figure(_("Paused queues"), paused, hint=_("They take jobs in and give none out."))


def queues(reports: Mapping[str, "Report"]) -> Iterator[Table]:
    """Yield the queues."""
    yield Table(
        _("Queues"),
        (_("Queue"), _("Scheduled"), _("Ready"), _("Running"), _("Dead"), _("Wait"), _("Workers"), _("Paused")),
        [
            (name, *report.counts, _waits(report.wait), report.workers, _paused(report.paused))
            for name, report in reports.items()
        ],
        empty=_("No queue has been used."),
        actions=OF_QUEUE,
        offered=[_offered(report) for report in reports.values()],
    )


def unknown(reports: Mapping[str, "Report"]) -> Iterator[Table]:
    """Yield the calls that no living worker can run, where there are such."""
    rows = [
        (one.call, name, one.jobs, duration(one.age)) for name, report in reports.items() for one in nobodys(report)
    ]
    if rows:
        columns = (_("Call"), _("Queue"), _("Jobs"), _("First one waits for"))
        yield Table(_("Calls that no living worker can run"), columns, rows[:MOST_ROWS])


def nobodys(report: "Report") -> list["UnknownCalls"]:
    """Return the calls in a queue that no living worker can run."""
    return [one for one in report.unknown if not one.known]


def bars(reports: Mapping[str, "Report"]) -> Iterator[Bars]:
    """Yield what was done and what failed in each minute, and how late attempts began in it, where there are queues."""
    if reports:
        several = list(reports.values())
        minutes = [_clock(several[0].minute - MINUTES + 1 + place) for place in range(MINUTES)]
        done = [float(sum(same)) for same in zip(*(one.done for one in several), strict=True)]
        latest = [max(same) for same in zip(*(one.latest for one in several), strict=True)]
        yield Bars(_("Jobs done per minute"), list(zip(minutes, done, strict=True)))
        failed = [float(sum(same)) for same in zip(*(one.failed for one in several), strict=True)]
        yield Bars(_("Attempts failed per minute"), list(zip(minutes, failed, strict=True)))
        yield Bars(_("How late attempts began, on average (s)"), list(zip(minutes, _lateness(several), strict=True)))
        yield Bars(_("How late attempts began, at most (s)"), list(zip(minutes, latest, strict=True)))


def groups(found: "Findings", dead: int, *, linked: bool) -> Table:
    """Return what dead jobs died of, ``dead`` in all. Where ``linked``, the latest of a group leads to its page."""
    from redis_kit.queues.panels import redaction

    latest = _("Dead jobs by task and error, the latest %d") % found.looked_at
    shown = found.groups[:MOST_ROWS]
    return Table(
        latest if dead > found.looked_at else _("Dead jobs by task and error"),
        (_("Task"), _("Error"), _("Jobs"), _("Last one died")),
        [
            (
                Lines((group.cause.task or _("no task"), name)),
                Lines((group.cause.error, redaction.text(group.latest.reason))),
                group.jobs,
                Lines((moment(group.latest.died or 0), link(name, group.latest.id) if linked else "")),
            )
            for name, group in shown
        ],
        actions=OF_GROUP,
        offered=[OF_GROUP if group.jobs > 1 else OF_GROUP_OF_ONE for name, group in shown],
        values=[GroupTarget(name, *group.cause).value for name, group in shown],
    )


def link(queue: str, id: str, text: Any = "") -> Link:
    """Return the link to the page of a job."""
    return Link(text or id, "queues", {"queue": queue, "id": id})


def _lateness(reports: Sequence["Report"]) -> list[float]:
    begun = [sum(same) for same in zip(*(one.begun for one in reports), strict=True)]
    late = [map(mul, one.begun, one.lateness) for one in reports]
    return [sum(same) / max(1, count) for same, count in zip(zip(*late, strict=True), begun, strict=True)]


def _offered(report: "Report") -> tuple[str, ...]:
    """Return the buttons of a queue. That of a paused one which pauses gives the pause another end."""
    fitting = {"resume": report.paused, "pause": True, "requeue_dead": report.counts.dead}
    return tuple(name for name in OF_QUEUE if fitting[name])


def _paused(pause: "Pause | None") -> Any:
    if pause is None:
        return ""
    end = _("until it is resumed") if pause.ends_in is None else _("for %s more") % duration(pause.ends_in)
    return Lines((end, _("since %s") % _day_and_minute(moment(pause.since))))


def _day_and_minute(when: datetime | str) -> str:
    return when if isinstance(when, str) else timezone.localtime(when).strftime("%Y-%m-%d %H:%M")


def _waits(wait: float | None) -> str:
    return "" if wait is None else duration(wait)


def _clock(minute: int) -> str:
    return timezone.localtime(datetime.fromtimestamp(minute * 60, UTC)).strftime("%H:%M")
