"""``manage.py rk_pause`` and ``rk_resume``."""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from redis_kit.core import terminal
from redis_kit.core.text import clean
from redis_kit.queues.commands.base import QueueCommand
from redis_kit.queues.validation import LONGEST_DELAY


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
