"""``manage.py rk_retry``: make dead jobs ready."""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from redis_kit.core import terminal
from redis_kit.core.text import clean
from redis_kit.queues.commands.base import FILTERS, QueueCommand, add_filters, identifier, jobs
from redis_kit.queues.engine.ids import in_full
from redis_kit.queues.queue import Queue

CHUNK = 1000  # jobs in one call


class Command(QueueCommand):
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
