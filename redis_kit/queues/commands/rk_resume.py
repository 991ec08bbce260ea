"""``manage.py rk_resume``: end a queue's pause."""

from typing import Any

from django.core.management.base import CommandError

from redis_kit.core.terminal import clean
from redis_kit.queues.commands.base import QueueCommand


class Command(QueueCommand):
    """Resume a queue."""

    help = "Let a paused queue give out jobs again."

    def do(self, *, name: str, using: str, **options: Any) -> None:
        """Resume it. Exit code 1 where it was not paused."""
        if not self.queue(name, using).resume():
            raise CommandError(f"Nothing was resumed: {clean(name)} was not paused.")
        self.tell(f"Resumed: {clean(name)}.", {"queue": name, "paused": False}, as_json=options["json"])
