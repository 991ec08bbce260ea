"""``manage.py rk_doctor``: what is wrong with the servers, and what to type."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from django.core.management.base import CommandParser
from django.utils import translation

from redis_kit.core import terminal
from redis_kit.core.client.addresses import aliases
from redis_kit.core.errors import ConfigurationError, RedisFailure
from redis_kit.core.terminal import duration
from redis_kit.core.text import byte_size, clean, counted
from redis_kit.operations.commands.rk_keys import OTHER, size_of
from redis_kit.operations.server import Advice, ServerReport, advice, sentinel_advice, server_reports

WELL, ADVICE = 0, 1  # exit codes


class Examination(NamedTuple):
    """A connection: its servers with their advice, what its Sentinels lack, and why it can't be read."""

    connection: str
    servers: list[tuple[ServerReport, list[Advice]]]
    sentinels: list[Advice]
    error: str = ""

    @property
    def advice(self) -> list[Advice]:
        """Return all of the advice."""
        return [*self.sentinels, *(each for _report, of_server in self.servers for each in of_server)]


class Command(terminal.KitCommand):
    """Examine the servers of all connections."""

    help = "Examine the servers of all connections: version, memory, persistence, replication, clock and rights."
    exit_codes = (
        "Exit codes: 0 nothing is wrong, 1 there are errors or warnings, 2 wrong arguments, 69 a server can't be "
        "reached or read, 78 wrong settings. Notes do not change the exit code."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the options."""
        parser.add_argument("--json", action="store_true", help="print JSON, with times in seconds")
        parser.add_argument("--using", type=terminal.alias, help="alias of a connection (default: all)")

    def handle(self, *args: Any, using: str | None, **options: Any) -> None:
        """Print the examinations."""
        with terminal.failing(), translation.override(None):
            examinations = [_examine(alias) for alias in ([using] if using else sorted(aliases()))]
        if options["json"]:
            self.write_json([*map(_plain, examinations)])
        else:
            for line in (line for each in examinations for line in _lines(each)):
                self.stdout.write(clean(line))
        self.stdout.flush()
        raise SystemExit(max(map(_code, examinations), default=WELL))


def _examine(alias: str) -> Examination:
    try:
        sentinels = sentinel_advice(alias, timeout=1.0)
        reports = server_reports(alias, profile="worker")
    except ConfigurationError:
        raise
    except RedisFailure as error:
        return Examination(alias, [], [], str(error))
    return Examination(alias, [(report, advice(report)) for report in reports], sentinels)


def _code(examination: Examination) -> int:
    if examination.error or any(report.error for report, _advice in examination.servers):
        return terminal.UNAVAILABLE
    return ADVICE if any(each.level != "note" for each in examination.advice) else WELL


def _lines(examination: Examination) -> Iterator[str]:
    if examination.error:
        yield f"{examination.connection}: {examination.error}"
    yield from _advised(examination.sentinels)
    for report, of_server in examination.servers:
        yield f"{examination.connection}: {report.where if report.error else _about(report)}"
        for row in report.memory:
            about = "" if row.share == 1 else "about "
            yield f"    {row.component or OTHER}: {about}{counted(row.keys, 'key')}, {size_of(row)}"
        yield from _advised(of_server)
    if not examination.error and not examination.advice:
        yield "  Nothing to improve was found."


def _about(report: ServerReport) -> str:
    info = report.info
    role = {"master": "primary", "slave": "replica"}.get(info.get("role", ""), "role unknown")
    if report.primary:
        role += f" at {report.primary}"
    parts = [f"{report.kind} {report.version or '(unknown version)'} at {report.where}", role]
    if info:
        parts += [
            f"up {duration(report.number('uptime_in_seconds'))}",
            f"{byte_size(report.number('used_memory'))} used",
        ]
    if report.keys is not None:
        parts.append(f"{counted(report.keys, 'key')} in all")
    return ", ".join(parts)


def _advised(advice: list[Advice]) -> Iterator[str]:
    for each in advice:
        yield f"  {each.level.upper()}: {each.message}"
        if each.remedy:
            yield f"    -> {each.remedy}"


def _plain(examination: Examination) -> dict[str, Any]:
    return {
        "connection": examination.connection,
        "error": examination.error,
        "advice": [each._asdict() for each in examination.sentinels],
        "servers": [
            {
                "server": report.where,
                "error": report.error,
                "kind": report.kind,
                "version": report.version,
                "role": report.info.get("role"),
                "primary": report.primary,
                "used_memory": report.number("used_memory"),
                "maxmemory": report.number("maxmemory"),
                "keys": report.keys,
                "replicas": report.replicas(),
                "clock_ahead": round(report.clock, 3),
                "user": report.user,
                "refused": report.refused,
                "missing": [each._asdict() for each in report.missing],
                "memory": [row._asdict() for row in report.memory],
                "slow": [entry._asdict() for entry in report.slow],
                "advice": [each._asdict() for each in of_server],
            }
            for report, of_server in examination.servers
        ],
    }
