"""``manage.py rk_bench``: how long operations take from here, on the server of a connection."""

import json
import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from secrets import token_hex
from time import perf_counter
from typing import Any, NamedTuple

import redis
from django.core.management.base import CommandParser
from django.test.utils import override_settings

from redis_kit.core import conf, connections, flow, terminal
from redis_kit.core.component import Operation, components
from redis_kit.core.settings import KitSettings
from redis_kit.core.steps import Batch, Call
from redis_kit.core.terminal import aligned
from redis_kit.operations.keys.search import LIMIT, find_keys
from redis_kit.operations.server.report import ServerReport, server_reports

SECONDS = (0.01, 60.0)  # for each operation
MOST = 1_000_000  # calls of one operation
COLUMNS = ("COMPONENT", "OPERATION", "A SECOND", "MEDIAN", "P99")


class Measured(NamedTuple):
    """An operation with its calls a second by one caller, and the seconds of a call."""

    component: str
    name: str
    calls: int
    per_second: float
    p50: float
    p99: float


class Command(terminal.KitCommand):
    """Measure operations."""

    help = (
        "Measure how long operations of locks, throttles and queues take from this machine, with one caller and one "
        "call after the other. The keys have a prefix of their own and are removed. The command keeps the server busy."
    )
    exit_codes = "Exit codes: 0 done, 2 wrong arguments, 69 Redis is unavailable, 78 wrong settings."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the options."""
        add = parser.add_argument
        add(
            "--seconds",
            type=terminal.seconds(*SECONDS),
            default=1.0,
            help=f"seconds for each operation, {SECONDS[0]:g} to {SECONDS[1]:g}, such as 30s (default: 1)",
        )
        add("--json", action="store_true", help="print JSON, with times in seconds")
        add("--using", type=terminal.alias, default="default", help="alias of the connection (default: default)")

    def handle(self, *args: Any, seconds: float, using: str, **options: Any) -> None:
        """Measure, remove the keys, and print the table."""
        with terminal.failing():
            server = server_reports(using, sample=False)[0]
            with _own_keys(using):
                rows = [
                    _measure(label, operation, seconds)
                    for label, its_operations in _operations(using)
                    for operation in its_operations
                ]
        if options["json"]:
            about = {"connection": using, "server": f"{server.kind} {server.version}", "where": server.where}
            data = {**about, "client": _client(), "operations": [row._asdict() for row in rows]}
            self.stdout.write(json.dumps(data, indent=2))
            return
        for line in _lines(using, server, rows):
            self.stdout.write(line)


def _operations(using: str) -> Iterator[tuple[str, Iterator[Operation]]]:
    client = connections.client(using)
    ping = partial(flow.run, client=client)
    yield "", iter([Operation("round trip", lambda: ping(flow.single(Call("EXISTS", _key()))))])
    for component in components():
        yield component.label, component.load_benchmarks(using)


def _measure(component: str, operation: Operation, seconds: float) -> Measured:
    operation.call()  # loads its scripts
    times: list[float] = []
    begun = now = perf_counter()
    while now - begun < seconds and len(times) < MOST:
        operation.call()
        times.append(-now + (now := perf_counter()))
    times.sort()
    p50, p99 = (times[int(len(times) * share)] for share in (0.5, 0.99))
    return Measured(component, operation.name, len(times), len(times) / (now - begun), p50, p99)


@contextmanager
def _own_keys(using: str) -> Iterator[None]:
    """Let all components use keys with a prefix that nobody else has, and remove them at the end."""
    prefix = f"{conf.section(KitSettings).PREFIX}:bench-{token_hex(4)}"
    with override_settings(REDIS_KIT={**conf.configured(), "PREFIX": prefix}):
        try:
            yield
        finally:
            _remove_keys(using)


def _remove_keys(using: str) -> None:
    client, cursor = connections.client(using, "worker"), ""
    while True:
        page = find_keys(cursor=cursor, limit=LIMIT[1], using=using, profile="worker")
        flow.run(_unlink([key.name for key in page.keys]), client)
        if not (cursor := page.cursor):
            return


def _unlink(names: Sequence[str]) -> flow.Flow[None]:
    if names:
        yield Batch([Call("UNLINK", name) for name in names])


def _key() -> str:
    return f"{conf.section(KitSettings).PREFIX}:none"


def _client() -> str:
    return f"redis-py {redis.__version__}, Python {platform.python_version()}"


def _lines(using: str, server: ServerReport, rows: Sequence[Measured]) -> Iterator[str]:
    yield f"{using}: {server.kind} {server.version} at {server.where}; {_client()}"
    shown = [
        (row.component, row.name, f"{row.per_second:,.0f}", f"{1000 * row.p50:.3f} ms", f"{1000 * row.p99:.3f} ms")
        for row in rows
    ]
    yield from aligned([COLUMNS, *shown], right=(2, 3, 4))
