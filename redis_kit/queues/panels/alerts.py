"""The alerts about queues on the dashboard's overview."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from redis_kit.core.panels import Alert
from redis_kit.queues.panels import history

if TYPE_CHECKING:
    from redis_kit.queues.monitoring.report import QueueStats

LATE = 300  # seconds for which a queue's next job has been due, before that is an alert
FAILING = 0.5  # share of failed attempts from which on that is an alert
ATTEMPTS = 10  # fewer make no alert, whatever share of them failed
NAMED = 3  # queues in alerts of one kind


def of_queues(reports: Mapping[str, "QueueStats"], *, linked: bool) -> Iterator[Alert]:
    """Yield the queues with dead jobs, the late ones, those paused though jobs are due, and those whose attempts fail.

    Of each kind the three worst ones and the number of the others. Queues without a worker are a figure.
    """
    dead = {name: report.counts.dead for name, report in reports.items() if report.counts.dead}
    waits = {name: report.wait for name, report in reports.items() if report.wait is not None and report.wait > LATE}
    late = {name: wait for name, wait in waits.items() if not (reports[name].paused or reports[name].deserted)}
    paused = {name: wait for name, wait in waits.items() if reports[name].paused}
    shares = {name: _failed_share(report) for name, report in reports.items()}
    failing = {name: share for name, share in shares.items() if share >= FAILING}
    for title, by_name, shown, hint in (
        (_("Dead jobs: %s"), dead, int, _("They failed for good. Retry or delete them.")),
        (_("Late queue: %s"), late, _seconds, _("The next job has been due for this time.")),
        (_("Paused queue: %s"), paused, _seconds, _("It is paused, and its next job has been due for this time.")),
        (_("Failing queue: %s"), failing, _percent, _("of the attempts of the last 30 minutes failed.")),
    ):
        names = sorted(by_name, key=by_name.__getitem__, reverse=True)
        for name in names[:NAMED]:
            yield Alert(title % name, shown(by_name[name]), hint, {"queue": name} if linked else {})
        if others := names[NAMED:]:
            count = ngettext("%(count)d other queue", "%(count)d other queues", len(others)) % {"count": len(others)}
            numbers = [by_name[name] for name in others]
            yield Alert(title % count, shown(sum(numbers) if by_name is dead else max(numbers)), hint)


def _failed_share(report: "QueueStats") -> float:
    """Return the share of the attempts of the last 30 minutes that failed; 0 if there were few."""
    failed = sum(report.failed[-history.MINUTES :])
    ended = failed + sum(report.done[-history.MINUTES :])
    return failed / ended if ended >= ATTEMPTS else 0.0


def _seconds(wait: float) -> timedelta:
    return timedelta(seconds=wait)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
