"""What the commands about queues have in common: a queue's name, JSON on request, and exit codes."""

import json
from collections.abc import Callable, Iterable
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from redis_kit.core import terminal
from redis_kit.core.terminal import clean
from redis_kit.core.text import did_you_mean
from redis_kit.queues.commands import queue_names
from redis_kit.queues.monitoring import stats
from redis_kit.queues.queue import Queue
from redis_kit.queues.tasks import registry

SHOWN = 20  # names


class QueueCommand(BaseCommand):
    """A command about one queue, or about all where ``name_count`` is "?"."""

    requires_system_checks = []
    name_count: str | None = None
    do: Callable[..., None]  # what the command is for

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the options of every such command."""
        self.parser = parser
        parser.add_argument("name", type=terminal.name, nargs=self.name_count, metavar="NAME", help="name of a queue")
        parser.add_argument("--json", action="store_true", help="for programs: times in seconds")
        parser.add_argument("--using", type=terminal.alias, default="default", help="alias of the connection (default)")

    def handle(self, *args: Any, **options: Any) -> None:
        """Do it. Exit code 1 where there is no such queue or nothing to do, 69 while Redis is away."""
        with terminal.failing():
            self.do(**options)

    def queue(self, name: str, using: str) -> Queue:
        """Return a queue that is known: it was used, or the settings or a task name it. Else exit with 1."""
        names = stats.queue_names(using=using)
        if name not in names:
            registry.discover()
            names = [*dict.fromkeys([*names, *queue_names.of_tasks()])]
        if name not in names:
            more = "" if len(names) <= SHOWN else f" and {len(names) - SHOWN:,} more"
            hint = did_you_mean(name, names, f"Known are: {', '.join(names[:SHOWN])}{more}.")
            raise CommandError(f"There is no queue {clean(name)}. {clean(hint)}")
        return Queue(name, using=using)

    def tell(self, sentence: str, data: dict[str, Any], *, as_json: bool) -> None:
        """Say what was done."""
        self.stdout.write(json.dumps(data) if as_json else sentence)

    def write(self, lines: Iterable[str]) -> None:
        """Write lines."""
        for line in lines:
            self.stdout.write(line)


def jobs(number: int, state: str = "") -> str:
    """Return a number of jobs in words."""
    return f"{number:,} {state + ' ' if state else ''}job{'' if number == 1 else 's'}"
