"""``manage.py rk_jobs``: the first jobs of queues, by state."""

import time
from collections.abc import Iterator, Sequence
from typing import Any

from django.core.management.base import CommandParser

from redis_kit.core import terminal
from redis_kit.core.terminal import aligned, cut, duration
from redis_kit.core.text import clean
from redis_kit.queues.commands.base import QueueCommand, add_filters, jobs
from redis_kit.queues.engine.done import DoneJob
from redis_kit.queues.engine.job import JobInfo, State, cause
from redis_kit.queues.engine.message import tags_of
from redis_kit.queues.management.manage import ANY, JobFilter
from redis_kit.queues.queue import Queue
from redis_kit.queues.reports.job_pages import LISTED_THROUGH, first_jobs
from redis_kit.queues.reports.stats import Errors, queue_counts, queue_names

STATES: tuple[State, ...] = ("running", "ready", "scheduled", "dead")
LIMIT = 1000
JOB_COLUMNS = ("QUEUE", "ID", "TASK", "STATE", "AGE", "ATTEMPTS", "WORKER", "ERROR")
DONE_COLUMNS = ("QUEUE", "ID", "TASK", "ENDED", "RAN", "WAITED", "ATTEMPTS", "WORKER")


Listed = list[tuple[str, State, list[JobInfo], int]]  # a queue, a state, its first jobs, and how many have it


class Command(QueueCommand):
    """List jobs."""

    help = (
        "List the first jobs of a queue, or of all queues: ids, tasks, states, ages, attempts and workers. Done jobs "
        "are listed with --state done, from the latest, if the queue keeps them by its option DONE_LIMIT."
    )
    name_count = "?"

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the options."""
        super().add_arguments(parser)
        parser.add_argument("--state", action=terminal.Once, choices=(*STATES, "done"), help="only jobs of this state")
        add_filters(parser, "task", "tag")
        limit = f"number of jobs of each state and queue, 1 to {LIMIT} (default: 20)"
        parser.add_argument("--limit", type=terminal.whole(1, LIMIT), default=20, metavar="N", help=limit)

    def run(self, *, name: str | None, using: str, task: str | None, tag: str | None, **options: Any) -> None:
        """List the jobs. Two round trips, one for each state of a queue, and more with a task or a tag."""
        wanted = JobFilter(task, tag=tag)
        names = queue_names(using=using) if name is None else [self.queue(name, using).name]
        errors: Errors = {}
        if options["state"] == "done":
            self._list_done([Queue(queue, using=using) for queue in names], wanted, **options)
            return
        counts = queue_counts(names, using=using, errors=errors)
        queues = [Queue(queue, using=using) for queue in counts]
        listed: Listed = [
            (queue.name, state, queue.run_flow(first_jobs(queue, state, options["limit"], wanted)), total)
            for queue in queues
            for state in STATES
            if options["state"] in (None, state) and (total := getattr(counts[queue.name], state))
        ]
        if options["json"]:
            self.write_json([_plain(queue, info) for queue, _, first, _ in listed for info in first])
        else:
            self.write_lines(_text(listed, wanted))
        self.fail_for(errors, names)

    def _list_done(self, queues: Sequence[Queue], wanted: JobFilter, *, limit: int, **options: Any) -> None:
        rows = [
            (queue.name, info) for queue in queues for info in queue.run_flow(first_jobs(queue, "done", limit, wanted))
        ]
        if options["json"]:
            self.write_json([{"queue": name, **info._asdict()} for name, info in rows])
        elif rows:
            table = [DONE_COLUMNS, *(_done_row(queue, info) for queue, info in rows)]
            self.write_lines(aligned(table, right=(4, 5, 6)))
        else:
            matching = "No done job matches." if wanted != ANY else "No done job is kept."
            self.stdout.write(f"{matching} The option DONE_LIMIT of a queue keeps the latest ones.")


def _text(listed: Listed, wanted: JobFilter) -> Iterator[str]:
    rows = [_job_row(queue, info) for queue, _, first, _ in listed for info in first]
    if rows:
        yield from aligned([JOB_COLUMNS, *rows], right=(5,))
    else:
        yield "No job matches." if listed else "There are no jobs."
    for queue, state, first, total in listed:
        if wanted != ANY and total > LISTED_THROUGH:
            yield f"Looked at the first {LISTED_THROUGH:,} of {jobs(total, state)} of {clean(queue)}."
        elif wanted == ANY and total > len(first):
            yield f"{clean(queue)}: {len(first):,} of {jobs(total, state)} are shown; see --limit."


def _plain(queue: str, info: JobInfo) -> dict[str, Any]:
    seconds = age(info)
    return {
        "queue": queue,
        "id": info.id,
        "task": cause(info).task,
        "tags": tags_of(info.body),
        "state": info.state,
        "age": None if seconds is None else round(seconds, 3),
        "attempts": info.attempts,
        "worker": info.worker,
        "priority": info.priority,
        "due": info.due,
        "error": error_of(info),
    }


def age(info: JobInfo) -> float | None:
    """Return for how many seconds a job waits, runs or is dead, negative until it is due; None if that is not known."""
    since = {"running": info.begun, "dead": info.died}.get(info.state, info.due)
    return time.time() - since if since else None  # the clocks of this machine and the server may differ


def error_of(info: JobInfo) -> str:
    """Return the name of a dead job's error; if it killed its processes the whole reason, which has no data."""
    name = cause(info).error
    return info.reason if name == "poison" else name


def _job_row(queue: str, info: JobInfo) -> tuple[str, ...]:
    task, error = cause(info).task, clean(error_of(info))
    if info.state == "ready" and info.reason:
        error = f"waits for {info.reason}"
    seconds = age(info)
    age_text = "" if seconds is None else duration(seconds) if seconds >= 0 else f"in {duration(-seconds)}"
    attempts = f"{info.attempts:,}"
    return cut(clean(queue)), info.id, cut(clean(task)), info.state, age_text, attempts, info.worker or "", cut(error)


def _done_row(queue: str, info: DoneJob) -> tuple[str, ...]:
    ago = f"{duration(max(0.0, time.time() - info.ended))} ago"
    ran = "" if info.run_time is None else duration(info.run_time)
    names = cut(clean(queue)), clean(info.id), cut(clean(info.task))
    return *names, ago, ran, duration(info.wait), f"{info.attempts:,}", clean(info.worker)
