"""``manage.py rk_worker``: run a worker."""

import logging
import os
from argparse import ArgumentTypeError
from functools import partial
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from redis_kit.core import conf, connections, terminal
from redis_kit.core.client import addresses
from redis_kit.core.logs.filters import protect_default_handlers
from redis_kit.core.text import clean, counted
from redis_kit.queues.commands import queue_names
from redis_kit.queues.settings import QueueSettings
from redis_kit.queues.worker.supervisor import autoreload, os_signals

DAY = 86_400.0
logger = logging.getLogger("redis_kit.worker")


class Command(terminal.KitCommand):
    """Run a worker."""

    help = "Run the tasks of queues until TERM or INT."
    requires_system_checks = "__all__"
    exit_codes = (
        "Exit codes: 0 stopped by a signal or a command, or --burst is done; 1 a port is taken; 2 wrong "
        "arguments; 78 wrong settings. A worker that can't reach Redis waits for it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the options."""
        add = parser.add_argument
        once = partial(add, action=terminal.Once)
        text = (
            "queues in strict order, such as mail,default, or by weight, such as mail:3,default:1; may be given "
            "several times (default: the queues in NAMES, then those of all tasks)"
        )
        add("--queue-name", type=queue_names.checked, action="append", metavar="NAMES", help=text)
        few = terminal.whole(1, 64)
        text = "number of processes, 1 to 64 (default: 1)"
        once("--processes", type=few, default=1, metavar="N", help=text)
        text = "threads per process, each runs one job, 1 to 64 (default: 8)"
        once("--threads", type=few, default=8, metavar="N", help=text)
        text = "seconds, or a duration such as 10m, for jobs to end after TERM, 0 to 1d (default: 25)"
        once("--grace", default=25.0, help=text, type=terminal.seconds(0, DAY), metavar="SECONDS")
        add("--burst", action="store_true", help="exit when no job is ready")
        count = terminal.whole(1, 1_000_000_000)
        once("--max-tasks", type=count, metavar="N", help="replace a process after N jobs, 1 to 1000000000")
        size = terminal.whole(16, 1_048_576)
        once("--max-rss", type=size, metavar="MIB", help="replace a process that uses more memory, 16 to 1048576 MiB")
        text = "restart when code changes, and wait while it is broken, for development"
        add("--reload", action="store_true", help=text)
        port = terminal.whole(1, 65_535)
        once("--health-port", type=port, metavar="PORT", help="answer GET /healthz, /livez and /readyz, 1 to 65535")
        text = "answer GET /metrics for Prometheus, 1 to 65535; may be the health port"
        once("--metrics-port", type=port, metavar="PORT", help=text)
        text = "the address of these ports, such as 0.0.0.0 in a container (default: 127.0.0.1)"
        once("--address", type=terminal.ip_address, default="127.0.0.1", help=text)
        text = (
            "seconds, or a duration such as 10m, that a ready job may wait before /healthz answers 503, 1 to 1d "
            "(default: 300)"
        )
        once("--max-wait", default=300.0, help=text, type=terminal.seconds(1, DAY), metavar="SECONDS")

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run the command. Before the worker handles signals, TERM and INT end the process at once."""
        with os_signals.loading():
            return super().execute(*args, **options)

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the worker. Return after a signal, also if jobs were returned to their queues."""
        if options["burst"] and options["reload"]:
            raise CommandError("--burst and --reload can't be used together.", returncode=2)
        protect_default_handlers()  # what tasks log may hold text that anyone chose
        with terminal.failing():
            from redis_kit.queues.tasks import discovery, middleware
            from redis_kit.queues.worker.options import Options
            from redis_kit.queues.worker.supervisor.supervisor import Supervisor

            discovery.discover()
            middleware.hooks()  # one that can't be made is reported here, too
            used = dict.fromkeys([*conf.section(QueueSettings).NAMES, *queue_names.of_tasks()])
            names, weights = tuple(used), None
            if options["queue_name"]:
                names, weights = _queues_and_weights(options["queue_name"])
            more = {name: options[name] for name in Options._fields[2:] if name in options}
            connections.client(profile="worker")  # a wrong address is reported here, not by each child process
            queue_names.check(names, used, weighed=weights is not None)
            worker_options = Options(names, weights, **more, older_shards=queue_names.older_shards(names))
            autoreload.note_loaded()
            try:
                supervisor = Supervisor(worker_options)
            except OSError as error:
                ports = dict.fromkeys(filter(None, (options["health_port"], options["metrics_port"])))
                wrong = f"Can't listen on port {' or '.join(map(str, ports))} of {options['address']}"
                raise CommandError(f"{wrong}: {error}") from error
            except ImportError as error:
                missing = f"--metrics-port needs a package: pip install 'django-redis-kit[prometheus]' ({error})"
                raise CommandError(missing, returncode=terminal.MISCONFIGURED) from error
        if settings.DEBUG:
            logger.warning("DEBUG is on and slows down the worker.")
        if options["verbosity"]:
            size = f"{worker_options.processes} x {counted(worker_options.threads, 'thread')}"
            where = f"supervisor: pid {os.getpid()}; Redis: {addresses.address('default')}"
            self.stdout.write(f"Working on {clean(', '.join(names))} with {size} ({where}). Stop with Ctrl-C.")
            self.stdout.flush()
        supervisor.run()


def _queues_and_weights(texts: list[str]) -> tuple[tuple[str, ...], tuple[int, ...] | None]:
    try:
        return queue_names.parse(",".join(texts))
    except ArgumentTypeError as error:
        raise CommandError(f"--queue-name: {error}", returncode=2) from error
