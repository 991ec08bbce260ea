"""``manage.py rk_purge``: delete the jobs of a queue that are in one state."""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from redis_kit.core.terminal import clean
from redis_kit.queues.commands.base import QueueCommand, jobs
from redis_kit.queues.queue import Queue
from redis_kit.queues.store.manage import PURGED


class Command(QueueCommand):
    """Delete jobs."""

    help = "Delete the ready, the scheduled or the dead jobs of a queue. Running ones are never deleted."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the options."""
        super().add_arguments(parser)
        parser.add_argument("--state", choices=PURGED, required=True, help="of the jobs")
        parser.add_argument("--yes", action="store_true", help="don't ask")

    def do(self, *, name: str, using: str, state: Any, **options: Any) -> None:
        """Delete them. Exit code 1 where there is none, or where that is not wanted."""
        if options["json"] and not options["yes"]:
            self.parser.error("--json needs --yes, as a program can't be asked")
        queue = self.queue(name, using)
        if not options["yes"]:
            self._confirm(queue, state)
        removed = queue.purge(state)
        if not removed:
            raise CommandError(f"Nothing was deleted: {clean(name)} has no {state} job.")
        data = {"queue": name, "state": state, "deleted": removed}
        self.tell(f"Deleted from {clean(name)}: {jobs(removed, state)}.", data, as_json=options["json"])

    def _confirm(self, queue: Queue, state: str) -> None:
        count, name = getattr(queue.counts(), state), clean(queue.name)
        if not count:
            raise CommandError(f"Nothing was deleted: {name} has no {state} job.")
        try:
            typed = input(f"{name} has {jobs(count, state)}. Type the name of the queue to delete them for ever: ")
        except EOFError:
            typed = ""
        if typed not in (queue.name, name):
            raise CommandError("Nothing was deleted: that is not the name. Use --yes where nobody can type it.")
