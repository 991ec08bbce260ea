"""Whose turn it is in a queue: its first jobs in each state, and those that died last."""

from collections.abc import Iterator
from typing import Any

from django.utils.translation import gettext_lazy as _

from redis_kit.core.flow import Flow
from redis_kit.core.panels import Lines, Table
from redis_kit.core.steps import Batch
from redis_kit.queues.jobs import job
from redis_kit.queues.jobs.job import Counts, State, StoredJob
from redis_kit.queues.monitoring import failures
from redis_kit.queues.panels import job_page, queues_page, redaction
from redis_kit.queues.queue import Queue
from redis_kit.queues.store import calls, manage

EACH = 20  # jobs of a state
TITLES: dict[State, Any] = {
    "running": _("Running in %s"),
    "ready": _("Ready in %s"),
    "scheduled": _("Scheduled in %s"),
    "dead": _("Dead in %s, the latest first"),
}
COLUMNS: dict[State, tuple[Any, ...]] = {
    "running": (_("Job"), _("Due"), _("Attempts"), _("Worker")),
    "ready": (_("Job"), _("Due"), _("Attempts")),
    "scheduled": (_("Job"), _("Due"), _("Attempts")),
    "dead": (_("Job"), _("Died"), _("Attempts"), _("Error")),
}


def first(name: str) -> Iterator[Table]:
    """Yield the first jobs of a queue, those that run before those that wait. One round trip. Raises InvalidName."""
    queue = Queue(name)
    counts, found = queue._run(_look(queue))
    for state, jobs in found.items():
        if jobs:
            yield _table(name, state, jobs, getattr(counts, state))
    if not any(found.values()):
        yield Table(job_page.FIRST % name, (), [], empty=_("Nothing runs or waits there, and nothing is dead."))


def _look(queue: Queue) -> Flow[tuple[Counts, dict[State, list[StoredJob]]]]:
    share = len(TITLES)
    peeks = [manage.peek_step(queue, EACH, state, cut=failures.HEAD, share=share) for state in TITLES]
    count, *replies = yield Batch([calls.COUNT(queue.key("")), *peeks])
    return Counts(*count), dict(zip(TITLES, map(job.stored, TITLES, replies), strict=True))


def _table(name: str, state: State, jobs: list[StoredJob], count: int) -> Table:
    # Both are looked at one after the other, and a job may have come between.
    of = {"number": len(jobs), "most": f"{max(count, len(jobs)):,}"}
    title = f"{TITLES[state] % name}: {_('%(number)s of %(most)s') % of}"
    return Table(title, COLUMNS[state], [_row(name, one) for one in jobs])


def _row(name: str, one: StoredJob) -> tuple[Any, ...]:
    what = Lines((queues_page.link(name, one.id), failures.task_of(one.body)))
    if one.state == "dead":
        return what, job_page.moment(one.died or 0), one.attempts, redaction.text(failures.cause(one).error)
    row = (what, job_page.moment(one.due), one.attempts)
    return (*row, one.worker) if one.state == "running" else row
