"""Several jobs of a queue as the value of a button: those that the viewer selected, or all that match a search."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, Self, cast
from urllib.parse import parse_qs, urlencode

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow
from redis_kit.core.primitive import Primitive
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.steps import CombinedBatch
from redis_kit.core.text import grouped
from redis_kit.queues.dashboard.actions import NAMED, JobTarget, existing, retried
from redis_kit.queues.dashboard.job_page import OF_STATES
from redis_kit.queues.engine.feature import canceller
from redis_kit.queues.engine.job import JobInfo, State
from redis_kit.queues.engine.message import task_of
from redis_kit.queues.engine.spread import spread
from redis_kit.queues.management import manage
from redis_kit.queues.queue import Queue
from redis_kit.queues.reports import job_pages
from redis_kit.queues.reports.job_pages import JobFilter

Step = Callable[[str, str], ScriptCall]  # of the beginning of a queue's keys, and an id
MOST = 1000  # jobs that one button changes
TEXTS = ("task", "error", "tag")  # of a filter
MATCHING = "?"  # begins the value of a button for all that match


class JobSelection(NamedTuple):
    """Jobs of a queue, by their ids, or if there are none all in a state that match the filter."""

    queue: str
    ids: tuple[str, ...]
    state: str = ""
    task: str = ""
    error: str = ""
    tag: str = ""

    @classmethod
    def parse(cls, value: str) -> Self:
        """Return the selection in the value of a button. Raises InvalidValue for any other text."""
        if value.startswith(MATCHING):
            fields = {name: values[-1] for name, values in parse_qs(value[1:]).items()}
            queue, state = fields.get("queue", ""), fields.get("state", "")
            if not queue or state not in OF_STATES:
                raise InvalidValue(_("Nothing was done: this is not a search for jobs."))
            return cls(queue, (), state, *(fields.get(name, "") for name in TEXTS))
        targets = [JobTarget.parse(line) for line in value.split("\n")]
        if len(targets) > MOST or len({target.queue for target in targets}) != 1:
            raise InvalidValue(_("Nothing was done: select up to %d jobs of one queue.") % MOST)
        return cls(targets[0].queue, tuple(dict.fromkeys(target.id for target in targets)))

    @property
    def value(self) -> str:
        """Return the value of the button for all that match."""
        return MATCHING + urlencode({name: text for name, text in self._asdict().items() if text and name != "ids"})

    @property
    def shown(self) -> str:
        """Return its name for confirmations and the log."""
        if self.ids:
            return f"{self.queue}, {', '.join(self.ids[:NAMED])}{', …' * (len(self.ids) > NAMED)}"
        return ", ".join([self.queue, self.state, *(repr(text) for text in self[3:] if text)])

    def effect(self, sentence: Callable[[int], str]) -> str:
        """Return what will happen, with the number of jobs and their tasks. Raises InvalidValue without a job."""
        if self.ids:
            return sentence(len(self.ids))
        jobs = self._matching(existing(self.queue))
        if not jobs:
            raise _no_jobs()
        tasks = Counter(task_of(info.body) or _("no task") for info in jobs)
        named = ", ".join(f"{task} ({count})" for task, count in tasks.most_common(NAMED))
        more = ", …" * (len(tasks) > NAMED)
        return f"{sentence(len(jobs))} " + _("Their tasks: %(tasks)s.") % {"tasks": named + more}

    def retry(self) -> str:
        """Make its dead jobs ready as if they were new. Raises InvalidValue if there are none."""
        queue, ids = self._chosen()
        return retried(_some(queue.requeue(ids)), self.queue)

    def run_now(self) -> str:
        """Make its scheduled jobs ready. Raises InvalidValue if there are none."""
        queue, ids = self._chosen()
        count = _some(queue.run_flow(_run_now(queue, ids)))
        return ngettext("Ready: %(count)s job of %(queue)s.", "Ready: %(count)s jobs of %(queue)s.", count) % {
            "count": grouped(count),
            "queue": self.queue,
        }

    def cancel(self) -> str:
        """Cancel its waiting jobs now, the running ones by their workers. Raises InvalidValue if there are none."""
        queue, ids = self._chosen()
        waited, running = queue.run_flow(_cancel(queue, ids))
        count = _some(waited + running)
        text = ngettext("Cancelled %(count)s job of %(queue)s.", "Cancelled %(count)s jobs of %(queue)s.", count)
        stopping = " " + _("%s of them are running; their workers stop them.") % grouped(running) if running else ""
        return text % {"count": grouped(count), "queue": self.queue} + stopping

    def delete(self) -> str:
        """Delete its jobs that are not running. Raises InvalidValue if there are none."""
        queue, ids = self._chosen()
        count = _some(queue.run_flow(_delete(queue, ids)))
        text = ngettext("Deleted %(count)s job of %(queue)s.", "Deleted %(count)s jobs of %(queue)s.", count)
        return text % {"count": grouped(count), "queue": self.queue}

    def _chosen(self) -> tuple[Queue, Sequence[str]]:
        queue = existing(self.queue)
        return queue, self.ids or [info.id for info in self._matching(queue)]

    def _matching(self, queue: Queue) -> list[JobInfo]:
        wanted: JobFilter = job_pages.JobFilter(*self[3:])
        jobs: list[JobInfo] = queue.run_flow(
            job_pages.all_matching(queue, cast("State", self.state), wanted, limit=MOST)
        )
        return [info for info in jobs if info.id.isascii()]


def _some(count: int) -> int:
    if not count:
        raise _no_jobs()
    return count


def _no_jobs() -> InvalidValue:
    return InvalidValue(_("Nothing was done: no job is in this state any more."))


def of_retry(count: int) -> str:
    """Return what a retry does to as many dead jobs."""
    return ngettext(
        "%(count)d dead job becomes ready as if it were new.",
        "%(count)d dead jobs become ready as if they were new.",
        count,
    ) % {"count": count}


def of_run_now(count: int) -> str:
    """Return what "Run now" does to as many scheduled jobs."""
    return ngettext(
        "%(count)d job becomes ready before its time.", "%(count)d jobs become ready before their time.", count
    ) % {"count": count}


def of_cancel(count: int) -> str:
    """Return what a cancellation does to as many jobs."""
    return ngettext(
        "%(count)d job will not run, or is stopped by its worker. Its result will say that it was cancelled.",
        "%(count)d jobs will not run, or are stopped by their workers. Their results will say that they were "
        "cancelled.",
        count,
    ) % {"count": count}


def of_deletion(count: int) -> str:
    """Return what a deletion does to as many jobs."""
    return ngettext(
        "%(count)d job is deleted, and can't be retried. Callers that wait for its result get none.",
        "%(count)d jobs are deleted, and can't be retried. Callers that wait for their results get none.",
        count,
    ) % {"count": count}


def _delete(queue: Primitive, ids: Sequence[str]) -> Flow[int]:
    """Delete jobs that no worker has; return how many there were. One round trip for each 500."""
    return sum((yield from _each(queue, ids, manage.delete_step)))


def _run_now(queue: Primitive, ids: Sequence[str]) -> Flow[int]:
    """Make scheduled jobs ready; return how many were scheduled. One round trip for each 500."""
    return sum((yield from _each(queue, ids, manage.run_now_step)))


def _cancel(queue: Primitive, ids: Sequence[str]) -> Flow[tuple[int, int]]:
    """Cancel jobs; return how many waited, and how many are to be stopped by their workers.

    One round trip for each 500.
    """
    answers = yield from _each(queue, ids, canceller())
    return answers.count(1), answers.count(manage.STOPPING)


def _each(queue: Primitive, ids: Sequence[str], step: Step) -> Flow[list[int]]:
    by_shard = yield from spread().each(queue, partial(_of_one, ids=ids, step=step))
    return [answer for answers in by_shard for answer in answers]


def _of_one(queue: Primitive, *, ids: Sequence[str], step: Step) -> Flow[list[int]]:
    answers: list[int] = []
    for at in range(0, len(ids), manage.CHUNK):
        steps = [step(queue.key(""), id) for id in ids[at : at + manage.CHUNK]]
        answers += yield CombinedBatch(steps)
    return answers
