"""The commands that change a queue or its jobs: ``rk_pause``, ``rk_resume``, ``rk_retry`` and ``rk_purge``."""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from redis_kit.core import terminal
from redis_kit.core.text import clean
from redis_kit.queues.commands.base import FILTERS, QueueCommand, add_filters, identifier, jobs
from redis_kit.queues.engine.ids import in_full
from redis_kit.queues.management.manage import PURGED
from redis_kit.queues.queue import Queue
from redis_kit.queues.validation import LONGEST_DELAY

CHUNK = 1000  # jobs in one call


class Pause(QueueCommand):
    """Pause a queue."""

    help = "Pause a queue: no worker claims its jobs until rk_resume, or for a time. Running jobs end as usual."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the options."""
        super().add_arguments(parser)
        parser.add_argument(
            "seconds",
            type=terminal.seconds(0.001, LONGEST_DELAY),
            nargs="?",
            metavar="SECONDS",
            help=f"{terminal.DURATION} (default: until rk_resume)",
        )

    def run(self, *, name: str, using: str, seconds: float | None, **options: Any) -> None:
        """Pause the queue, or change the end of its pause."""
        self.queue(name, using).pause(seconds)
        end = "until resumed" if seconds is None else f"for {terminal.duration(seconds)}"
        data = {"queue": name, "paused": True, "seconds": seconds}
        self.report(f"Paused: {clean(name)}, {end}.", data, as_json=options["json"])


class Resume(QueueCommand):
    """Resume a queue."""

    help = "Resume a paused queue: workers claim its jobs again."

    def run(self, *, name: str, using: str, **options: Any) -> None:
        """Resume the queue. Exit code 1 if it is not paused."""
        if not self.queue(name, using).resume():
            raise CommandError(f"Nothing was resumed: {clean(name)} was not paused.")
        self.report(f"Resumed: {clean(name)}.", {"queue": name, "paused": False}, as_json=options["json"])


class Retry(QueueCommand):
    """Retry dead jobs."""

    help = "Make dead jobs of a queue ready as if they were new: all of them, or by id, task, error or tag."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the options."""
        super().add_arguments(parser)
        parser.add_argument(
            "ids", type=identifier, nargs="*", default=[], metavar="ID", help="id of a dead job (default: all)"
        )
        parser.add_argument(
            "--limit", type=terminal.whole(1, 1_000_000), metavar="N", help="at most N jobs, the oldest first"
        )
        add_filters(parser, *FILTERS)
        terminal.add_no_input(parser)

    def run(self, *, name: str, using: str, ids: list[str], limit: int | None, **options: Any) -> None:
        """Retry the jobs. Exit code 1 if there are none."""
        wanted = {name: options[name] for name in FILTERS if options[name] is not None}
        is_filtered = limit is not None or bool(wanted)
        if ids and is_filtered:
            self.parser.error("use either ids, or --limit, --task, --error and --tag")
        asks = not ids and not is_filtered
        if asks:
            self.check_no_input(**options)
        queue, shown = self.queue(name, using), clean(name)
        if asks and not options["no_input"] and (dead := queue.counts().dead):
            question = f"{shown} has {jobs(dead, 'dead')}. Type 'yes' to retry all of them: "
            terminal.confirm(question, "yes", nothing="Nothing was retried")
        if ids:
            moved = queue.requeue(form for id in ids for form in in_full(id, name))
        elif wanted:
            moved = queue.requeue(**wanted, limit=limit)
        else:
            moved = _oldest(queue, limit)
        if not moved:
            hint = f"rk_jobs {shown} --state dead lists their tasks and errors."
            raise CommandError(f"Nothing was retried: no dead job of {shown} matches. {hint}")
        of = f" of {len(set(ids)):,}" if ids and moved < len(set(ids)) else ""
        data = {"queue": name, "retried": moved}
        self.report(f"Retried in {shown}: {jobs(moved)}{of}.", data, as_json=options["json"])


def _oldest(queue: Queue, limit: int | None) -> int:
    dead = queue.counts().dead
    maximum = dead if limit is None else min(dead, limit)
    moved = 0
    while moved < maximum and (count := queue.requeue(limit=min(CHUNK, maximum - moved))):
        moved += count
    return moved


class Purge(QueueCommand):
    """Delete jobs."""

    help = "Delete the ready, scheduled or dead jobs of a queue. Running jobs are never deleted."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the options."""
        super().add_arguments(parser)
        parser.add_argument(
            "--state", action=terminal.Once, choices=PURGED, required=True, help="state of the jobs to delete"
        )
        terminal.add_no_input(parser)

    def run(self, *, name: str, using: str, state: Any, **options: Any) -> None:
        """Delete the jobs. Exit code 1 if there are none, or without confirmation."""
        self.check_no_input(**options)
        queue, shown = self.queue(name, using), clean(name)
        nothing = CommandError(f"Nothing was deleted: {shown} has no {state} job.")
        if not options["no_input"]:
            count = getattr(queue.counts(), state)
            if not count:
                raise nothing  # jobs that come now are not deleted without a question
            question = f"{shown} has {jobs(count, state)}. Type the name of the queue to delete them permanently: "
            terminal.confirm(question, name, shown, nothing="Nothing was deleted")
        removed = queue.purge(state)
        if not removed:
            raise nothing
        data = {"queue": name, "state": state, "deleted": removed}
        self.report(f"Deleted from {shown}: {jobs(removed, state)}.", data, as_json=options["json"])
