"""``manage.py rk_purge``: delete the jobs of a queue in one state."""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from redis_kit.core import terminal
from redis_kit.core.text import clean
from redis_kit.queues.commands.base import QueueCommand, jobs
from redis_kit.queues.management.manage import PURGED


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
