"""The alerts about queues on the dashboard's overview."""

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from redis_kit.core.panels import Alert
from redis_kit.core.text import grouped
from redis_kit.queues.panels import history

if TYPE_CHECKING:
    from redis_kit.queues.monitoring.report import QueueStats

LATE = 300  # seconds for which a queue's next job has been due, before that is an alert
FAILING = 0.5  # share of failed attempts from which on that is an alert
ATTEMPTS = 10  # fewer make no alert, whatever share of them failed
NAMED = 3  # queues in alerts of one kind

FAILED = _(
    "%(failed)s of the %(attempts)s attempts of the last 30 minutes failed, the latest at most %(minutes)d min ago."
)


class Ended(NamedTuple):
    """Attempts of the last 30 minutes: the share and the number that failed, and minutes since the latest failure."""

    share: float
    failed: int
    attempts: int
    minutes: int


def of_queues(reports: Mapping[str, "QueueStats"], *, linked: bool) -> Iterator[Alert]:
    """Yield the queues with dead jobs, the late ones, those paused though jobs are due, and those whose attempts fail.

    Of each kind the three worst ones and the number of the others. Queues without a worker are a figure.
    """
    dead = {name: report.counts.dead for name, report in reports.items() if report.counts.dead}
    waits = {name: report.wait for name, report in reports.items() if report.wait is not None and report.wait > LATE}
    late = {name: wait for name, wait in waits.items() if not (reports[name].paused or reports[name].deserted)}
    paused = {name: wait for name, wait in waits.items() if reports[name].paused}
    ended = {name: _ended(report) for name, report in reports.items()}
    failing = {name: each for name, each in ended.items() if each.attempts >= ATTEMPTS and each.share >= FAILING}
    kinds: tuple[tuple[Any, Mapping[str, Any], Callable[[Any], Any], Any], ...] = (
        (_("Dead jobs: %s"), dead, int, _("They failed for good. Retry or delete them.")),
        (_("Late queue: %s"), late, _seconds, _("The next job has been due for this time.")),
        (_("Paused queue: %s"), paused, _seconds, _("It is paused, and its next job has been due for this time.")),
        (_("Failing queue: %s"), failing, _percent, FAILED),
    )
    for title, by_name, shown, hint in kinds:
        names = sorted(by_name, key=by_name.__getitem__, reverse=True)
        for name in names[:NAMED]:
            asked = {"queue": name} if linked else {}
            yield Alert(title % name, shown(by_name[name]), _hint(hint, by_name[name]), asked)
        if others := names[NAMED:]:
            count = ngettext("%(count)d other queue", "%(count)d other queues", len(others)) % {"count": len(others)}
            numbers = [by_name[name] for name in others]
            number = sum(numbers) if by_name is dead else max(numbers)
            yield Alert(title % count, shown(number), _hint(hint, number))


def _ended(report: "QueueStats") -> Ended:
    failed = report.failed[-history.MINUTES :]
    attempts = sum(failed) + sum(report.done[-history.MINUTES :])
    minutes = next((ago for ago, count in enumerate(reversed(failed), 1) if count), 0)
    return Ended(sum(failed) / max(attempts, 1), sum(failed), attempts, minutes)


def _hint(hint: Any, number: Any) -> Any:
    if not isinstance(number, Ended):
        return hint
    numbers = {"failed": grouped(number.failed), "attempts": grouped(number.attempts), "minutes": number.minutes}
    return hint % numbers


def _seconds(wait: float) -> timedelta:
    return timedelta(seconds=wait)


def _percent(ended: Ended) -> str:
    return f"{100 * ended.share:.0f} %"
