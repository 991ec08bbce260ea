"""``manage.py rk_worker``: run the tasks of some queues."""

import logging
import math
import os
import sys
from argparse import ArgumentTypeError
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from redis_kit.core import conf
from redis_kit.core.errors import InvalidName
from redis_kit.core.keys import encode
from redis_kit.queues.component import QueueSettings

THREADS = (1, 64)
GRACE = (0.0, 86_400.0)
logger = logging.getLogger("redis_kit.worker")


class Command(BaseCommand):
    """Run tasks until TERM or INT."""

    help = "Run the tasks of some queues, until TERM or INT."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the options."""
        parser.add_argument(
            "--queue-name",
            type=_names,
            metavar="NAMES",
            help="queues in strict order, as mail,default (those in NAMES, then those of all tasks)",
        )
        parser.add_argument("--threads", type=_threads, default=8, help="jobs at once, 1 to 64 (8)")
        parser.add_argument("--grace", type=_grace, default=25.0, help="seconds for jobs to end after TERM (25)")
        parser.add_argument("--burst", action="store_true", help="end when no job is ready")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the worker. Exits with 0 after a signal, also where jobs had to be given back."""
        from redis_kit.queues import registry
        from redis_kit.queues.worker.launcher import Launcher, Options

        registry.discover()
        known = dict.fromkeys([*conf.section(QueueSettings).NAMES, *registry.queue_names()])
        names = options["queue_name"] or tuple(known)
        launcher = Launcher(Options(names, options["threads"], options["grace"], options["burst"]))
        if settings.DEBUG:
            logger.warning("DEBUG is on: a worker is slower with it.")
        self.stdout.write(f"Working on {', '.join(names)} with {options['threads']} threads. Stop with Ctrl-C.")
        self.stdout.flush()
        if not launcher.run():
            # Jobs that were given back are still running here; nothing of theirs may happen any more.
            logging.shutdown()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)


def _names(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    try:
        for name in names:
            encode(name)
    except InvalidName as error:
        raise ArgumentTypeError(str(error)) from error
    return names


def _threads(text: str) -> int:
    if not text.isdecimal() or not THREADS[0] <= int(text) <= THREADS[1]:
        raise ArgumentTypeError(f"{text!a} is no whole number from {THREADS[0]} to {THREADS[1]}")
    return int(text)


def _grace(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not GRACE[0] <= seconds <= GRACE[1]:
        raise ArgumentTypeError(f"{text!a} is no number of seconds from {GRACE[0]:.0f} to {GRACE[1]:.0f}")
    return seconds
