"""``manage.py rk_pause``: pause a queue."""

from typing import Any

from django.core.management.base import CommandParser

from redis_kit.core import terminal
from redis_kit.core.terminal import duration
from redis_kit.core.text import clean
from redis_kit.queues.commands.base import QueueCommand
from redis_kit.queues.validation import LONGEST_DELAY


class Command(QueueCommand):
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
        end = "until resumed" if seconds is None else f"for {duration(seconds)}"
        data = {"queue": name, "paused": True, "seconds": seconds}
        self.report(f"Paused: {clean(name)}, {end}.", data, as_json=options["json"])
