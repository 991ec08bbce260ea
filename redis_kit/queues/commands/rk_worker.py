"""``manage.py rk_worker``: run a worker."""

import logging
import os
import re
from argparse import ArgumentTypeError
from collections.abc import Collection
from functools import partial
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from redis_kit.core import conf, connections, terminal
from redis_kit.core.client import addresses
from redis_kit.core.errors import InvalidName, RedisFailure
from redis_kit.core.keys import encode
from redis_kit.core.logs.filters import protect_default_handlers
from redis_kit.core.text import clean, counted, did_you_mean
from redis_kit.queues.engine.spread import spread
from redis_kit.queues.settings import QUEUE_OPTIONS, QueueSettings
from redis_kit.queues.tasks import registry
from redis_kit.queues.worker.supervisor import autoreload, os_signals

DAY = 86_400.0
WEIGHT = (1, 1000)
A_WEIGHT = f"a weight is a whole number between {WEIGHT[0]} and {WEIGHT[1]}"
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
        add("--queue-name", type=_checked, action="append", metavar="NAMES", help=text)
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
            used = dict.fromkeys([*conf.section(QueueSettings).NAMES, *registry.queue_names()])
            names, weights = tuple(used), None
            if options["queue_name"]:
                names, weights = _queues_and_weights(options["queue_name"])
            more = {name: options[name] for name in Options._fields[2:] if name in options}
            connections.client(profile="worker")  # a wrong address is reported here, not by each child process
            _check(names, used, weighed=weights is not None)
            worker_options = Options(names, weights, **more, older_shards=_older_shards(names))
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
        return parse(",".join(texts))
    except ArgumentTypeError as error:
        raise CommandError(f"--queue-name: {error}", returncode=2) from error


def parse(text: str) -> tuple[tuple[str, ...], tuple[int, ...] | None]:
    """Return the names and, if they have weights, the weights."""
    parts = list(dict.fromkeys(part.strip() for part in text.split(",")))
    weighted = [re.fullmatch(r"(.+):(\d+)", part, re.DOTALL) for part in parts]
    names = tuple(match[1] if match else part for match, part in zip(weighted, parts, strict=True))
    weights = tuple(int(match[2][:9]) for match in weighted if match)
    try:
        for name in names:
            encode(name)
    except InvalidName as error:
        raise ArgumentTypeError(str(error)) from error
    if not weights:
        return names, None
    if len(weights) < len(names) or len(set(names)) < len(names):
        raise ArgumentTypeError(f"{text!a}: give each queue one weight, or none of them; {A_WEIGHT}")
    if not all(WEIGHT[0] <= weight <= WEIGHT[1] for weight in weights):
        raise ArgumentTypeError(f"{text!a}: {A_WEIGHT}")
    return names, weights


def _checked(text: str) -> str:
    """Return names as they were given, if parse() can read them."""
    if text.rstrip().endswith(","):  # a shell makes two arguments of "a, b"
        hint = "Write the names without blanks between them, such as mail,default."
        raise ArgumentTypeError(f"{text!a} ends with a comma. {hint}")
    parse(text)
    return text


def _older_shards(names: Collection[str]) -> tuple[str, ...]:
    """Return shards of these queues that get no more jobs and may have some. One round trip, or three if there are any.

    While Redis is unavailable none are known.
    """
    try:
        older = tuple(spread().older(names))
    except RedisFailure:
        return ()
    if older:
        logger.warning("The worker also runs what is left in shards that get no more jobs: %s.", ", ".join(older))
    return older


def _check(names: Collection[str], listed: Collection[str], *, weighed: bool) -> None:
    """Warn of queues to work on that are not listed, have no options and were never used.

    So it does of others in ``QUEUE_OPTIONS`` that are not listed and not used, if their names are like listed ones.
    Raise CommandError for a name that ends with a weight.

    A worker registers its queues, so even a wrong name is registered after the first start; therefore a queue counts
    as used if a job was ever added. Two round trips if a name is not listed; no check while Redis is unavailable.
    """
    from redis_kit.queues.queue import over
    from redis_kit.queues.reports.stats import never_used, queue_names

    options = conf.section(QueueSettings).QUEUE_OPTIONS
    hints = {name: hint for name in options if name not in listed and (hint := did_you_mean(name, listed))}
    unlisted = [name for name in names if name not in listed and name not in options]
    if not (hints or unlisted):
        return
    try:
        registered, unused = queue_names(), over("default").run_flow(never_used(unlisted))
    except RedisFailure:
        return
    for name in hints.keys() - registered:
        logger.warning("%s has options of the queue %a, which no task uses. %s", QUEUE_OPTIONS, name, hints[name])
    used = {*listed, *options, *registered} - unused
    for name in filter(unused.__contains__, unlisted):
        if ":" in name and name not in registered and len(names) > 1 and not weighed:
            weight = name.rpartition(":")[2]
            wrong = f"--queue-name: there is no queue {name!a}, and {weight!a} is not a weight: {A_WEIGHT}."
            raise CommandError(f"{wrong} To use a new queue of that name, add it to NAMES.", returncode=2)
        hint = did_you_mean(name, sorted(used), "Is the name right?")
        logger.warning("Unknown queue %a: no task uses it and it is empty. %s", name, hint)
