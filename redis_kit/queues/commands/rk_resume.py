"""``manage.py rk_resume``: end the pause of a queue."""

from typing import Any

from django.core.management.base import CommandError

from redis_kit.core.text import clean
from redis_kit.queues.commands.base import QueueCommand


class Command(QueueCommand):
    """Resume a queue."""

    help = "Resume a paused queue: workers claim its jobs again."

    def run(self, *, name: str, using: str, **options: Any) -> None:
        """Resume the queue. Exit code 1 if it is not paused."""
        if not self.queue(name, using).resume():
            raise CommandError(f"Nothing was resumed: {clean(name)} was not paused.")
        self.report(f"Resumed: {clean(name)}.", {"queue": name, "paused": False}, as_json=options["json"])
