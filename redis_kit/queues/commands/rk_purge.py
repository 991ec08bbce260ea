"""``manage.py rk_purge``: delete the jobs of one state."""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from redis_kit.core import terminal
from redis_kit.core.text import clean
from redis_kit.queues.commands.base import QueueCommand, jobs
from redis_kit.queues.management.manage import PURGED
from redis_kit.queues.queue import Queue


class Command(QueueCommand):
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
        queue = self.queue(name, using)
        if not options["no_input"]:
            _confirm(queue, state)
        removed = queue.purge(state)
        if not removed:
            raise CommandError(f"Nothing was deleted: {clean(name)} has no {state} job.")
        data = {"queue": name, "state": state, "deleted": removed}
        self.report(f"Deleted from {clean(name)}: {jobs(removed, state)}.", data, as_json=options["json"])


def _confirm(queue: Queue, state: str) -> None:
    count, name = getattr(queue.counts(), state), clean(queue.name)
    if not count:
        raise CommandError(f"Nothing was deleted: {name} has no {state} job.")
    question = f"{name} has {jobs(count, state)}. Type the name of the queue to delete them permanently: "
    terminal.confirm(question, queue.name, name, nothing="Nothing was deleted")
