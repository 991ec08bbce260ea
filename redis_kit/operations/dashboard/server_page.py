"""The dashboard's page about the servers."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils.translation import gettext_lazy as _

from redis_kit.core.panels import (
    MOST_ROWS,
    Alert,
    Content,
    Figure,
    Lines,
    Meter,
    Panel,
    Search,
    Table,
    Tile,
    connection_fields,
    first_alerts,
)
from redis_kit.core.text import byte_size
from redis_kit.operations.dashboard.keys_page import KeysPanel, memory_table
from redis_kit.operations.keyspace import merged
from redis_kit.operations.server import Advice, ServerReport, advice, sentinel_advice, server_reports

ROUND = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)  # seconds
LEVELS = {"error": _("Error"), "warning": _("Warning"), "note": _("Note")}
STATUS = {"ok": _("ok"), "err": _("failed")}


class ServerPanel(Panel):
    """The state of the servers of one connection, and what to change there."""

    slug = "server"
    title = _("Server")
    permission = "redis_kit.view_server"

    def search(self) -> Search | None:
        """Return the choice of a connection, if there are several."""
        fields = connection_fields()
        return Search(_("Show"), fields) if fields else None

    def content(self) -> Iterator[Content]:
        """Return the state of each server. Two round trips to each, and one to each Sentinel."""
        using = self.viewer.connection
        sentinels = sentinel_advice(using)
        reports = server_reports(using)
        yield from _state(reports, sentinels)
        memory = merged([report.memory for report in reports])
        yield memory_table(memory, linked=self.viewer.may(KeysPanel.permission))
        for report in (report for report in reports if not report.error):
            yield Table(_("Server %s") % report.where, (_("Property"), _("Value")), _facts(report))
        yield _slow_log(reports)

    def tile(self, replies: Mapping[str, Any]) -> Tile | None:
        """Return a line about the servers, and their advice as alerts. One round trip to each server."""
        reports = server_reports(self.viewer.connection, sample=False)
        urgent = [each for report in reports for each in advice(report) if each.level != "note"]
        errors_first = sorted(urgent, key=lambda each: each.level)
        alerts = first_alerts(Alert(each.message, hint=each.remedy) for each in errors_first)
        return Tile(list(_health(reports)), alerts=list(alerts), wide=True)


def _health(reports: Sequence[ServerReport]) -> Iterator[Figure]:
    info = next((report.info for report in reports if report.info), reports[0].info)
    if len(reports) > 1:
        yield Figure(_("Servers"), len(reports))
    elif info:
        yield Figure(_("Version"), f"{reports[0].kind} {reports[0].version}")
    memory, _keys, connections, commands = _figures(reports)
    yield from (memory, connections, commands)
    yield Figure(_("Eviction"), info.get("maxmemory_policy"))
    answer = 2 * max(report.clock_error for report in reports)
    rounded = next((step for step in ROUND if answer <= step), answer)  # or the page would change with each refresh
    yield Figure(_("Answers within"), timedelta(seconds=rounded))


def _state(reports: Sequence[ServerReport], sentinels: Sequence[Advice]) -> Iterator[Content]:
    problems: list[tuple[Any, Advice]] = [(_("Sentinels"), each) for each in sentinels]
    problems += [(report.where, each) for report in reports for each in advice(report)]
    urgent = [each for _where, each in problems if each.level != "note"]
    yield Figure(_("Advice"), len(urgent), _("errors and warnings"), alarm=bool(urgent))
    yield from _figures(reports)
    yield _advice(problems, several=len(reports) > 1 or bool(sentinels))


def _advice(problems: Sequence[tuple[Any, Advice]], *, several: bool) -> Table:
    columns = (_("Level"), _("Problem"), _("Remedy"), *((_("Server"),) if several else ()))
    return Table(
        _("Advice"),
        columns,
        [
            (LEVELS[each.level], each.message, each.remedy, where)[: len(columns)]
            for where, each in problems[:MOST_ROWS]
        ],
        empty=_("Nothing to improve was found."),
    )


def _slow_log(reports: Sequence[ServerReport]) -> Table:
    entries = sorted((entry for report in reports for entry in report.slow), key=lambda entry: entry.at, reverse=True)
    return Table(
        _("Slow log"),
        (_("Began"), _("Duration"), _("Command"), _("Key")),
        [(entry.at, timedelta(seconds=entry.seconds), entry.command, entry.key) for entry in entries[:MOST_ROWS]],
        empty=_("The slow log is empty."),
    )


def _facts(report: ServerReport) -> list[tuple[Any, Any]]:
    info, limit = report.info, report.number("maxmemory")
    if not info:
        return [(_("User"), report.user)]
    saved = report.number("rdb_last_save_time") if report.number("rdb_saves") else 0  # else the time of the start
    aof = STATUS.get(info.get("aof_last_write_status", "")) if info.get("aof_enabled") == "1" else _("off")
    replicas = [f"{each.get('ip')}:{each.get('port')}" for each in report.replicas()]
    return [
        (_("Version"), f"{report.kind} {report.version}"),
        (_("Role"), {"master": _("primary"), "slave": _("replica")}.get(info.get("role", ""))),
        (_("Replicas"), Lines(replicas) if replicas else _("none")),
        (_("Runs for"), Lines([timedelta(seconds=report.number("uptime_in_seconds"))])),
        (_("Peak memory"), byte_size(report.number("used_memory_peak"))),
        (_("Limit of memory (maxmemory)"), _used(report.number("used_memory"), limit) if limit else _("none")),
        (_("Eviction (maxmemory-policy)"), info.get("maxmemory_policy")),
        (_("Append-only file"), aof),
        (_("Last snapshot"), datetime.fromtimestamp(saved, UTC) if saved else _("none since the start")),
        (
            _("The clock is behind by") if report.clock < 0 else _("The clock is ahead by"),
            Lines([timedelta(seconds=abs(round(report.clock, 3)))]),
        ),
        (_("User"), report.user),
    ]


def _used(used: float, limit: float) -> Meter:
    words = _("%(number)s of %(most)s") % {"number": byte_size(used), "most": byte_size(limit)}
    return Meter(used, limit, shown=words)


def _total(reports: Sequence[ServerReport], field: str) -> int:
    return int(sum(report.number(field) for report in reports))


def _figures(reports: Sequence[ServerReport]) -> Iterator[Figure]:
    limit = _total(reports, "maxmemory")
    memory = byte_size(_total(reports, "used_memory"))
    yield Figure(_("Memory"), memory, _("of %s") % byte_size(limit) if limit else "")
    yield Figure(_("Keys"), sum(report.keys or 0 for report in reports), _("of all programs in this database"))
    yield Figure(_("Connections"), _total(reports, "connected_clients"))
    hint = _("with those inside scripts, and those that read this page")
    yield Figure(_("Commands per second"), _total(reports, "instantaneous_ops_per_sec"), hint)
