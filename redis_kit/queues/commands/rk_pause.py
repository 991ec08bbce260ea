"""``manage.py rk_pause``: pause a queue."""

from argparse import ArgumentTypeError
from typing import Any

from django.core.management.base import CommandParser

from redis_kit.core.terminal import duration
from redis_kit.core.text import clean
from redis_kit.queues.commands.base import QueueCommand
from redis_kit.queues.validation import LONGEST_DELAY


class Command(QueueCommand):
    """Pause a queue."""

    help = "Pause a queue: no worker claims its jobs until rk_resume, or for some seconds. Running jobs end as usual."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the options."""
        super().add_arguments(parser)
        parser.add_argument(
            "seconds", type=_seconds, nargs="?", metavar="SECONDS", help="seconds to pause (default: until rk_resume)"
        )

    def run(self, *, name: str, using: str, seconds: float | None, **options: Any) -> None:
        """Pause the queue, or change the end of its pause."""
        self.queue(name, using).pause(seconds)
        end = "until resumed" if seconds is None else f"for {duration(seconds)}"
        data = {"queue": name, "paused": True, "seconds": seconds}
        self.report(f"Paused: {clean(name)}, {end}.", data, as_json=options["json"])


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0
    if not 0.001 <= seconds <= LONGEST_DELAY:
        raise ArgumentTypeError(f"{text!a} is not a number of seconds up to {LONGEST_DELAY:,} (10 years)")
    return seconds
