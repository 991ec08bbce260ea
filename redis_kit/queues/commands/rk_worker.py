"""``manage.py rk_worker``: run the tasks of some queues."""

import logging
import math
import os
from argparse import ArgumentTypeError
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser, SystemCheckError

from redis_kit.core import conf, connections, terminal
from redis_kit.core.client import addresses
from redis_kit.core.logs.filters import protect_default_handlers
from redis_kit.queues.commands import queue_names
from redis_kit.queues.settings import QueueSettings
from redis_kit.queues.worker.supervisor import os_signals

DAY = 86_400.0
logger = logging.getLogger("redis_kit.worker")


class Command(BaseCommand):
    """Run tasks until TERM or INT."""

    help = "Run the tasks of some queues, until TERM or INT. Exit code 0 then; 2: wrong arguments, 78: wrong settings."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the options."""
        add = parser.add_argument
        add(
            "--queue-name",
            type=queue_names.parse,
            metavar="NAMES",
            help="queues in strict order, as mail,default, or by weight, as mail:3,default:1 (those in NAMES, then "
            "those of all tasks)",
        )
        add("--processes", type=_whole(1, 64), default=1, metavar="N", help="processes, 1 to 64 (1)")
        add("--threads", type=_whole(1, 64), default=8, metavar="N", help="jobs at once in each, 1 to 64 (8)")
        text = "time for jobs to end after TERM, 0 to 86400 (25)"
        add("--grace", default=25.0, help=text, type=_seconds(0, DAY), metavar="SECONDS")
        add("--burst", action="store_true", help="end when no job is ready")
        most = _whole(1, 1_000_000_000)
        add("--max-tasks", type=most, metavar="N", help="replace a process after so many jobs, 1 to 1000000000")
        size = _whole(16, 1_048_576)
        add("--max-rss", type=size, metavar="MIB", help="replace a process that is larger than this, 16 to 1048576 MiB")
        add("--reload", action="store_true", help="start again when code changes, for development")
        port = _whole(1, 65_535)
        add("--health-port", type=port, metavar="PORT", help="answer GET /healthz on 127.0.0.1, 1 to 65535")
        text = "time for which a ready job may wait before that answers 503, 1 to 86400 (300)"
        add("--max-wait", default=300.0, help=text, type=_seconds(1, DAY), metavar="SECONDS")

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run the command. Until the worker takes signals, those to stop end the process at once."""
        with os_signals.loading():
            return super().execute(*args, **options)

    def check(self, *args: Any, **options: Any) -> None:
        """Run Django's checks. Where they find errors the command ends with 78, as with all wrong settings."""
        try:
            super().check(*args, **options)
        except SystemCheckError as error:
            error.returncode = terminal.MISCONFIGURED
            raise

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the worker. Returns after a signal, also where jobs had to be given back."""
        if options["burst"] and options["reload"]:
            raise CommandError("--burst and --reload exclude each other.", returncode=2)
        protect_default_handlers()  # the framework logs a failed task once more, with what its exception says
        with terminal.failing():
            from redis_kit.queues.tasks import registry
            from redis_kit.queues.worker.options import Options
            from redis_kit.queues.worker.shared.logs import counted
            from redis_kit.queues.worker.supervisor import autoreload
            from redis_kit.queues.worker.supervisor.supervisor import Supervisor

            registry.discover()
            if os.environ.get(autoreload.TRIAL):
                return
            known = dict.fromkeys([*conf.section(QueueSettings).NAMES, *queue_names.of_tasks()])
            names, weights = options["queue_name"] or (tuple(known), None)
            its = Options(names, weights, **{name: options[name] for name in Options._fields[2:]})
            connections.client(profile="worker")  # what is wrong with its address is told here, not by each child
            if options["queue_name"]:
                queue_names.check(names, known, weighed=weights is not None)
            try:
                supervisor = Supervisor(its)
            except OSError as error:
                raise CommandError(f"Port {its.health_port} can't be listened on: {error}") from error
        if settings.DEBUG:
            logger.warning("DEBUG is on: a worker is slower with it.")
        told = f"{its.processes} x {counted(its.threads, 'thread')}"
        where = f"supervisor: pid {os.getpid()}; Redis: {addresses.address('default')}"
        self.stdout.write(f"Working on {terminal.clean(', '.join(names))} with {told} ({where}). Stop with Ctrl-C.")
        self.stdout.flush()
        supervisor.run()


def _whole(least: int, most: int) -> Callable[[str], int]:
    def parsed(text: str) -> int:
        if not (text.isascii() and text.isdecimal()) or not least <= int(text[:20]) <= most:
            raise ArgumentTypeError(f"{text[:80]!a} is no whole number from {least} to {most}")
        return int(text)

    return parsed


def _seconds(least: float, most: float) -> Callable[[str], float]:
    def parsed(text: str) -> float:
        try:
            seconds = float(text)
        except ValueError:
            seconds = math.nan
        if not least <= seconds <= most:
            raise ArgumentTypeError(f"{text[:80]!a} is no number of seconds from {least:.0f} to {most:.0f}")
        return seconds

    return parsed
