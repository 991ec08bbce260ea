"""``manage.py rk_pause``: let a queue give out no jobs for a while."""

from argparse import ArgumentTypeError
from typing import Any

from django.core.management.base import CommandParser

from redis_kit.core.terminal import clean, duration
from redis_kit.queues.commands.base import QueueCommand
from redis_kit.queues.validation import LONGEST_DELAY


class Command(QueueCommand):
    """Pause a queue."""

    help = "Let a queue give out no jobs, until rk_resume or for some seconds. Running jobs end as usual."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the options."""
        super().add_arguments(parser)
        parser.add_argument("seconds", type=_seconds, nargs="?", metavar="SECONDS", help="for how long (no end)")

    def do(self, *, name: str, using: str, seconds: float | None, **options: Any) -> None:
        """Pause it, or give its pause another end."""
        self.queue(name, using).pause(seconds)
        end = "until it is resumed" if seconds is None else f"for {duration(seconds)}"
        data = {"queue": name, "paused": True, "seconds": seconds}
        self.tell(f"Paused: {clean(name)}, {end}.", data, as_json=options["json"])


def _seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = 0
    if not 0.001 <= found <= LONGEST_DELAY:
        raise ArgumentTypeError(f"{text!a} is no number of seconds up to {LONGEST_DELAY:,}, which is 10 years")
    return found
