"""Whose turn it is in a queue: a table of its first jobs in each state."""

from collections.abc import Iterator
from itertools import chain
from typing import Any

from django.utils.translation import gettext_lazy as _

from redis_kit.core.flow import Flow
from redis_kit.core.panels import Lines, Table
from redis_kit.core.steps import Batch
from redis_kit.queues import deaths, job, jobpage, managing, tables
from redis_kit.queues.job import State, StoredJob
from redis_kit.queues.queue import Queue

STATES: tuple[State, ...] = ("running", "ready", "scheduled")
EACH = 20  # jobs of a state


def table(name: str) -> Table:
    """Return the first jobs of a queue, those that run before those that wait. One round trip. Raises InvalidName."""
    queue = Queue(name)
    columns = (_("Job"), _("State"), _("Due"), _("Attempts"), _("Worker"))
    rows = list(queue._run(_rows(queue)))
    return Table(_("First jobs of %s") % name, columns, rows, empty=_("Nothing runs or waits there."))


def _rows(queue: Queue) -> Flow[Iterator[tuple[Any, ...]]]:
    steps = [managing.peek_step(queue, EACH, state, cut=deaths.HEAD, share=len(STATES)) for state in STATES]
    replies = yield Batch(steps)
    found = chain.from_iterable(map(job.stored, STATES, replies))
    return (_row(queue.name, one) for one in found)


def _row(name: str, one: StoredJob) -> tuple[Any, ...]:
    what = Lines((tables.link(name, one.id), deaths.task_of(one.body)))
    return what, jobpage.STATES[one.state], jobpage.moment(one.due), one.attempts, one.worker or ""
