"""The base of the commands about queues: the name of a queue, JSON output, and exit codes."""

from argparse import ArgumentTypeError
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from django.core.management.base import CommandError, CommandParser

from redis_kit.core import conf, terminal
from redis_kit.core.errors import InvalidValue, RedisUnavailable
from redis_kit.core.text import clean, counted, did_you_mean
from redis_kit.queues import validation
from redis_kit.queues.engine.enqueue import MOST_NAMES
from redis_kit.queues.queue import Queue
from redis_kit.queues.reports import stats
from redis_kit.queues.reports.stats import Errors
from redis_kit.queues.settings import QueueSettings
from redis_kit.queues.tasks import discovery, registry

SHOWN = 20  # names
FILTERS = {
    "task": "of this task, such as shop.tasks.send_mail",
    "error": "with this error, such as ValueError",
    "tag": "with this tag, such as billing",
}


class QueueCommand(terminal.KitCommand):
    """A command about one queue, or about all queues if ``name_count`` is "?"; without ``takes_name`` about jobs."""

    name_count: str | None = None
    takes_name = True
    run: Callable[..., None]

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the options of all these commands."""
        self.parser = parser
        if self.takes_name:
            about = "name of a queue"
            parser.add_argument("name", type=terminal.name, nargs=self.name_count, metavar="NAME", help=about)
        parser.add_argument("--json", action="store_true", help="print JSON, with times in seconds")
        parser.add_argument("--using", type=terminal.alias, default="default", help="alias of the connection (default)")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the command. Exit code 1: no queue of this name or nothing to do; 69: Redis is unavailable."""
        with terminal.failing():
            self.run(**options)

    def queue(self, name: str, using: str) -> Queue:
        """Return a queue that was used, or that the settings or a task name. Exit with 1 for any other name."""
        try:
            names = stats.queue_names(using=using)
        except RedisUnavailable:  # of a Cluster, the node that has the list may be down, and that of the queue not
            discovery.discover()
            if name not in (*conf.section(QueueSettings).NAMES, *registry.queue_names()):
                raise
            return Queue(name, using=using)
        if name not in names:
            discovery.discover()
            names = [*dict.fromkeys([*names, *registry.queue_names()])]
        if name not in names:
            more = "" if len(names) <= SHOWN else f" and {len(names) - SHOWN:,} more"
            hint = did_you_mean(name, names, f"Queues: {', '.join(map(terminal.cut, names[:SHOWN]))}{more}.")
            full = f" At most {MOST_NAMES:,} names are listed, so it may exist. Add it to NAMES in the settings."
            hint += full if len(names) >= MOST_NAMES else ""
            raise CommandError(f"There is no queue {clean(name)!r}. {clean(hint)}")
        return Queue(name, using=using)

    def check_no_input(self, *, json: bool, no_input: bool, **options: Any) -> None:
        """End with 2 if a program that reads JSON would be asked for confirmation."""
        if json and not no_input:
            self.parser.error("--json needs --no-input: it does not ask for confirmation")

    def fail_for(self, errors: Errors, names: Sequence[str], *, named: bool = False) -> None:
        """Name the queues that can't be read, unless the output names them, and end with 69 if there are any."""
        for line in () if named else unreadable(errors):
            self.stderr.write(line)
        if errors:
            many = f"{len(errors):,} of {len(names):,} queues"
            raise CommandError(f"{many} can't be read.", returncode=terminal.UNAVAILABLE)


def unreadable(errors: Errors) -> Iterator[str]:
    """Return a line for each queue that can't be read."""
    return (f"Queue {clean(name)} can't be read: {clean(str(error))}" for name, error in errors.items())


def identifier(text: str) -> str:
    """Read an argument that is the id of a job."""
    try:
        return validation.identifier("ID", text)
    except InvalidValue as error:
        raise ArgumentTypeError(str(error)) from error


def add_filters(parser: CommandParser, *names: str) -> None:
    """Add the options that choose jobs by the names of FILTERS."""
    for name in names:
        metavar = None if name == "tag" else "NAME"
        parser.add_argument(f"--{name}", action=terminal.Once, metavar=metavar, help=f"only jobs {FILTERS[name]}")


def jobs(number: int, state: str = "") -> str:
    """Return a number of jobs as text."""
    return counted(number, f"{state} job".strip())
