"""The servers: the state of each, read without changing anything, the faults that it shows, and what to type."""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import cache
from math import ceil
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from django.utils import timezone
from django.utils.translation import gettext as _

import redis_kit
from redis_kit.core import conf, connections, flow, scripts
from redis_kit.core.checks.servers import cluster_problems, info_problems, outdated, parsed
from redis_kit.core.client import connection_factory, error_map
from redis_kit.core.client.addresses import address
from redis_kit.core.component import components
from redis_kit.core.errors import PermissionDenied, RedisFailure, RedisUnavailable
from redis_kit.core.flow import Flow
from redis_kit.core.settings import KitSettings
from redis_kit.core.steps import Call, TolerantBatch
from redis_kit.operations.keyspace import SAMPLE, ComponentMemory, measured

SLOWEST = 32  # entries of the slow log
OPTIONS = ("appendfsync", "min-replicas-to-write", "slowlog-log-slower-than")
#: The commands of a report, by the words that an ACL has for them.
READ = {
    "time": Call("TIME"),
    "info": Call("INFO", "everything"),
    "eval": Call("EVAL", 'return redis.call("TIME")', 0),
    "dbsize": Call("DBSIZE"),
    "config|get": Call("CONFIG", "GET", *OPTIONS),
    "slowlog|get": Call("SLOWLOG", "GET", SLOWEST),
    "acl|whoami": Call("ACL", "WHOAMI"),
}
LIST_MISSING = scripts.load(__package__, "list_missing_rights")
Level = Literal["error", "warning", "note"]
FULL = 0.9  # of a limit
SLOW = 0.1  # seconds of a command that is worth an advice
CLOCK = 1.0  # seconds that two clocks may differ
LAG = 10  # seconds of a replica
FRAGMENTED = 1.5, 100 * 2**20  # ratio and bytes of memory that the server holds and does not use
ROOM = 1.5  # of what is used, or of a limit that is nearly reached
OF_MACHINE = 0.7  # the part of a machine's memory for maxmemory: the rest is for copies while a snapshot is written
RECENT = timedelta(hours=1)
COMMANDS = {
    "W010": "CONFIG SET maxmemory-policy noeviction",
    "W011": "CONFIG SET appendonly yes",
}
RESTART_COUNTS = "CONFIG RESETSTAT"  # so that what is mended is advised no more


class SlowCommand(NamedTuple):
    """An entry of the slow log: when it began, seconds on the server, the command or script, and its first key."""

    at: datetime
    seconds: float
    command: str
    key: str


class MissingRights(NamedTuple):
    """The rights that the user lacks for a component: some ``commands``, or its ``keys``, given as a pattern."""

    component: str
    keys: str
    commands: tuple[str, ...]


class ServerReport(NamedTuple):
    """The state of one server, of one primary in a Cluster.

    - ``info``: the fields of INFO; empty if the user may not run it.
    - ``options``: some of the options of CONFIG; empty if the user may not read them.
    - ``keys``: the number of keys of the database.
    - ``clock``: seconds by which the server's clock is ahead of this process's, and ``clock_error``: by how many
      seconds that may be wrong, half of the round trip.
    - ``scripts_have_time``: whether a script can read the clock.
    - ``user``: the user of the connection, "" if it is not known.
    - ``refused``: the commands that the server refused, as in an ACL: ``info``, ``slowlog|get``.
    - ``missing``: the rights that the user lacks for components.
    - ``memory``: the estimated memory of each component, the largest first.
    - ``moved``: how many of these keys are in slots that the node of a Cluster does not own.
    - ``error``: why a node of a Cluster could not be read. Then all fields above are empty.
    - ``primary``: the address of the server that the Sentinels named; "" without Sentinels.
    """

    connection: str
    where: str
    info: Mapping[str, str]
    options: Mapping[str, str]
    keys: int | None
    clock: float
    clock_error: float
    scripts_have_time: bool
    user: str
    slow: list[SlowCommand]
    refused: tuple[str, ...]
    missing: list[MissingRights]
    memory: list[ComponentMemory]
    moved: int = 0
    error: str = ""
    primary: str = ""

    @property
    def kind(self) -> str:
        """Return ``redis`` or ``valkey``."""
        return "valkey" if "valkey_version" in self.info else "redis"

    @property
    def version(self) -> str:
        """Return the version, "" if it is not known."""
        return self.info.get("valkey_version") or self.info.get("redis_version", "")

    def number(self, field: str) -> float:
        """Return a field of INFO as a number; 0 if it is missing."""
        try:
            return float(self.info.get(field, 0))
        except ValueError:
            return 0

    def replicas(self) -> list[dict[str, str]]:
        """Return the replicas as INFO describes them: address, state, seconds of lag."""
        replicas = (value for field, value in self.info.items() if re.fullmatch(r"slave\d+", field))
        return [dict(part.split("=", 1) for part in replica.split(",") if "=" in part) for replica in replicas]


def server_reports(
    using: str = "default", *, sample: bool = True, profile: connections.Profile = "request"
) -> list[ServerReport]:
    """Return the state of the server of a connection, of each primary of a Cluster. Nothing is written.

    One round trip to each server, and one more with a ``sample`` of the memory of components: that of up to 5,000
    keys, in the order of SCAN, by MEMORY USAGE with 5 samples each, so that no value is read as a whole. Raises
    RedisUnavailable, for a Cluster if none of its primaries answers.
    """
    client = connections.client(using, profile)
    nodes = client.primaries() if client.is_cluster else [client]
    reports, failures = [], []
    for node in nodes:
        try:
            reports.append(flow.run(_report(using, node.where, sample), node)._replace(primary=node.primary))
        except RedisUnavailable as error:
            failures.append(error)
            nothing = ServerReport(using, node.where, {}, {}, None, 0.0, 0.0, False, "", [], (), [], [])
            reports.append(nothing._replace(error=error.reason or str(error)))
    if len(failures) == len(nodes):
        raise failures[0]
    return reports


def _report(using: str, where: str, sample: bool) -> Flow[ServerReport]:
    before = time.time()
    rights = _asking(using)
    answers = yield TolerantBatch([*READ.values(), *rights.values(), *([SAMPLE] if sample else [])])
    after = time.time()
    refused = tuple(name for name, reply in zip(READ, answers, strict=False) if isinstance(reply, Exception))
    unavailable = next((reply for reply in answers if isinstance(reply, RedisUnavailable)), None)
    if unavailable is not None:
        unavailable.using = using
        raise unavailable
    replies = {name: _or_none(reply) for name, reply in zip(READ, answers, strict=False)}
    info = parsed(replies["info"] or b"")
    missing = _missing_rights(
        {name: _or_none(reply) for name, reply in zip(rights, answers[len(READ) :], strict=False)}
    )
    memory: list[ComponentMemory] = []
    moved = 0
    page = _or_none(answers[-1]) if sample else None
    if page:
        memory, failure, moved = yield from measured(page, replies["dbsize"] or 0, float(info.get("used_memory", 0)))
        refused += ("memory|usage",) if isinstance(failure, PermissionDenied) else ()
    elif sample:
        refused += ("scan",)
    seconds, micros = map(int, replies["time"] or (0, 0))
    clock = seconds + micros / 1_000_000 - (before + after) / 2 if replies["time"] else 0.0
    options = replies["config|get"] or ()
    return ServerReport(
        using,
        where,
        info,
        {_text(name): _text(value) for name, value in zip(options[::2], options[1::2], strict=True)},
        replies["dbsize"],
        clock,
        (after - before) / 2,
        replies["eval"] is not None,
        _text(replies["acl|whoami"] or b"") or address(using).username,
        [_slow(*entry[1:4]) for entry in replies["slowlog|get"] or ()],
        refused,
        missing,
        memory,
        moved,
    )


def _or_none(reply: Any) -> Any:
    if isinstance(reply, Exception) and not isinstance(reply, RedisFailure):
        raise reply
    return None if isinstance(reply, Exception) else reply


def _slow(at: int, microseconds: int, command: Sequence[bytes]) -> SlowCommand:
    name, *arguments = map(_text, command)
    key = arguments[0] if arguments else ""
    if name.upper() in ("EVAL", "EVALSHA"):
        if script := _script_names().get(key):
            name = f"{script.removeprefix('redis_kit.')} (script)"
        key = arguments[2] if len(arguments) > 2 and arguments[1] != "0" else ""
    elif not key.startswith(f"{conf.section(KitSettings).PREFIX}:"):
        key = ""  # an argument that may be a secret
    return SlowCommand(datetime.fromtimestamp(at, UTC), microseconds / 1_000_000, name, key)


@cache
def _script_names() -> dict[str, str]:
    """Return the names of scripts by digest: of all as they are without features, and of those that ran here."""
    root = Path(redis_kit.__file__).parent
    for path in root.rglob("scripts/[!_]*.lua"):
        scripts.load(".".join((root.name, *path.parent.parent.relative_to(root).parts)), path.stem)
    return scripts.names


def _text(value: bytes) -> str:
    return value.decode("utf-8", "backslashreplace")


def _asking(using: str) -> dict[str, Call]:
    """Return the step that asks for the rights of each component, by its name. It runs with the source, as EVAL."""
    of_all = ["ping", "type", *(["asking"] if address(using).cluster else [])]
    asked = {}
    for component in components():
        if component.commands:
            key = f"{_key_prefix(component.label)}{'' if component.one_slot else ':x'}}}:x"
            asked[component.label] = Call(*LIST_MISSING([], [key, *of_all, *component.commands.split()]).with_source())
    return asked


def _missing_rights(replies: Mapping[str, Any]) -> list[MissingRights]:
    """Return the rights that are missing; none for replies that are None."""
    missing = []
    with_channels = {each.label for each in components() if "ssubscribe" in each.commands.split()}
    for component, reply in replies.items():
        has_keys, commands = reply or (1, ())
        if not has_keys or commands:
            keys = "" if has_keys else f"~{_key_prefix(component)}*"
            if keys and component in with_channels:
                keys += f" &{_key_prefix(component)}*"
            missing.append(MissingRights(component, keys, tuple(name.decode() for name in commands)))
    return missing


def _key_prefix(component: str) -> str:
    """Return how the keys and the channels of a component begin."""
    return f"{conf.section(KitSettings).PREFIX}:{{{component}"


class Advice(NamedTuple):
    """A fault of a server, and the command or the step that mends it.

    The level is ``error`` if data or answers may be lost now, ``warning`` if they may be lost later, or ``note``.
    """

    level: Level
    message: str
    remedy: str


def advice(report: ServerReport) -> list[Advice]:
    """Return the advice about a server, errors first. Calls no server."""
    if report.error:
        wrong = _("The server does not answer: %(error)s") % {"error": report.error}
        return [Advice("error", wrong, _("Start it, or let a replica take over."))]
    if outdated(report.info):
        return [each for each in _settings(report) if each.level == "error"]  # the rest is about servers that work
    rules = (_access, _rights, _settings, _persistence, _memory, _clients, _replication, _slots, _clock, _slow_commands)
    order = ("error", "warning", "note")
    advice = sorted((each for rule in rules for each in rule(report)), key=lambda each: order.index(each.level))
    return [*advice, *_lasting(report, advice)]


def _lasting(report: ServerReport, advice: Sequence[Advice]) -> Iterator[Advice]:
    if any(each.remedy.startswith(("CONFIG SET", "ACL SETUSER")) for each in advice):
        wrong = _("A restart of the server loses what the commands above change.")
        by_hand = _("Write them into the server's configuration.")
        yield Advice("note", wrong, "CONFIG REWRITE" if report.info.get("config_file") else by_hand)


def _access(report: ServerReport) -> Iterator[Advice]:
    if not report.scripts_have_time:
        wrong = _("Scripts cannot run or cannot read the clock: locks, throttles and queues do not work.")
        yield Advice("error", wrong, f"ACL SETUSER {report.user or 'USER'} +eval +evalsha +time")
    unread = [name for name in report.refused if name != "eval"]
    if unread:
        wrong = _("The user may not run these commands, so parts of this report are missing: %(commands)s.")
        rights = " ".join(f"+{name}" for name in unread)
        yield Advice("note", wrong % {"commands": ", ".join(unread)}, f"ACL SETUSER {report.user or 'USER'} {rights}")


def _rights(report: ServerReport) -> Iterator[Advice]:
    user = report.user or "USER"
    lacking: dict[tuple[str, ...], list[str]] = {}
    for rights in report.missing:
        lacking.setdefault(rights.commands, []).append(rights.component)
    for commands, labels in lacking.items():
        if commands:
            wrong = _("The user may not run these commands of %(component)s, so some calls fail: %(commands)s.")
            named = {"component": ", ".join(labels), "commands": ", ".join(commands)}
            granted = [f"+{name}" for name in commands]
            if "ssubscribe" in commands:  # also refused if it is the channels that are missing
                granted += [f"&{_key_prefix(name)}*" for name in labels]
            yield Advice("error", wrong % named, f"ACL SETUSER {user} {' '.join(granted)}")
    closed = [rights for rights in report.missing if rights.keys]
    if closed:
        wrong = _("The user may not use the keys of these components, so their calls fail: %(components)s.")
        names = ", ".join(rights.component for rights in closed)
        patterns = " ".join(rights.keys for rights in closed)
        yield Advice("note", wrong % {"components": names}, f"ACL SETUSER {user} {patterns}")


def _settings(report: ServerReport) -> Iterator[Advice]:
    if not report.info:
        return
    where = _("The server")
    for problem in (*cluster_problems(report.connection, where, report.info), *info_problems(where, report.info)):
        level: Level = "error" if problem.id.startswith("E") else "warning"
        yield Advice(level, problem.message, COMMANDS.get(problem.id) or problem.hint)
    if report.options.get("slowlog-log-slower-than", "").startswith("-"):
        yield Advice("note", _("The slow log is off."), "CONFIG SET slowlog-log-slower-than 10000")


def _persistence(report: ServerReport) -> Iterator[Advice]:
    writes = {
        "aof_last_write_status": _("The last write to the append-only file failed, so the server may refuse writes."),
        "aof_last_bgrewrite_status": _("The last rewrite of the append-only file failed."),
        "rdb_last_bgsave_status": _("The last snapshot failed, so the server may refuse writes."),
    }
    for field, wrong in writes.items():
        if report.info.get(field, "ok") != "ok":
            yield Advice("error", wrong, _("Read the server's log. Usual causes: a full disk, or too little memory."))
    if report.info.get("aof_enabled") == "1" and report.options.get("appendfsync") == "no":
        wrong = _("The append-only file is written to disk only when the system chooses: a power cut loses 30 s.")
        yield Advice("warning", wrong, "CONFIG SET appendfsync everysec")


def _memory(report: ServerReport) -> Iterator[Advice]:
    used, limit, machine = map(report.number, ("used_memory", "maxmemory", "total_system_memory"))
    refuses = report.info.get("maxmemory_policy") == "noeviction"
    if limit and used >= limit:
        wrong = _("%(percent)d %% of maxmemory is used: the server evicts keys now.")
        if refuses:
            wrong = _("%(percent)d %% of maxmemory is used: the server refuses writes now.")
        yield Advice("error", wrong % {"percent": 100 * used // limit}, _more_memory(used, machine, used * ROOM))
    elif limit and used > FULL * limit:
        wrong = _("%(percent)d %% of maxmemory is used. When it is full, the server evicts keys.")
        if refuses:
            wrong = _("%(percent)d %% of maxmemory is used. When it is full, the server refuses writes.")
        yield Advice("warning", wrong % {"percent": 100 * used // limit}, _more_memory(used, machine, limit * ROOM))
    if report.info and not limit:
        wrong = _("maxmemory is not set: a server that fills the machine's memory, or its container's, is killed.")
        yield Advice("note", wrong, _more_memory(used, machine, machine))
    if evicted := report.number("evicted_keys"):
        wrong = _("%(count)d keys were evicted since the start: locks and jobs may have been among them.")
        level: Level = "note" if report.info.get("maxmemory_policy") == "noeviction" else "warning"
        yield Advice(level, wrong % {"count": evicted}, RESTART_COUNTS)
    ratio, least = FRAGMENTED
    resident = report.number("used_memory_rss")
    if resident - used > least and resident > ratio * used:
        wrong = _("The server holds %(ratio).1f times the memory that it uses, as its memory is fragmented.")
        yield Advice("note", wrong % {"ratio": resident / max(used, 1)}, "CONFIG SET activedefrag yes")


def _more_memory(used: float, machine: float, wanted: float) -> str:
    """Return what raises maxmemory: the command for a limit above the use that the machine can bear, or words."""
    limit = min(wanted, machine * OF_MACHINE)
    if limit > used / FULL:
        return f"CONFIG SET maxmemory {ceil(limit / 2**20)}mb"
    return _(
        "Give the server more memory, or shorten the RETENTION of what fills it. Then set maxmemory to 70 % of it."
    )


def _clients(report: ServerReport) -> Iterator[Advice]:
    clients, most = report.number("connected_clients"), report.number("maxclients")
    raised = f"CONFIG SET maxclients {round(most * 2) or 10_000}"
    if refused := report.number("rejected_connections"):
        wrong = _("%(count)d connections were refused since the start, as maxclients was reached.")
        yield Advice("warning", wrong % {"count": refused}, f"{raised}, then {RESTART_COUNTS}")
    if most and clients > FULL * most:
        wrong = _("%(clients)d of %(most)d connections are in use. When all are, new ones are refused.")
        yield Advice("warning", wrong % {"clients": clients, "most": most}, raised)


def _replication(report: ServerReport) -> Iterator[Advice]:
    if report.info.get("role") == "slave":
        wrong = _("The connection leads to a replica, which refuses writes.")
        remedy = _("Give the connection the primary's address, or the Sentinels with SENTINELS and SERVICE.")
        yield Advice("error", wrong, remedy)
    if report.info.get("master_link_status", "up") != "up":
        wrong = _("The replica has lost its primary %(address)s: what it answers may be old.")
        address = f"{report.info.get('master_host')}:{report.info.get('master_port')}"
        yield Advice(
            "error", wrong % {"address": address}, _("Start the primary, or run REPLICAOF with the right address.")
        )
    if report.replicas() and report.options.get("min-replicas-to-write") == "0":
        wrong = _("A primary that is cut off from its replicas accepts writes that the fail-over loses.")
        yield Advice("note", wrong, "CONFIG SET min-replicas-to-write 1")
    for replica in report.replicas():
        lag = int(replica.get("lag", 0))
        if replica.get("state") != "online" or lag > LAG:
            wrong = _("The replica %(address)s lags by %(lag)d s (%(state)s). A fail-over now would lose writes.")
            address = f"{replica.get('ip')}:{replica.get('port')}"
            remedy = _("Check the network and the load of the replica.")
            yield Advice("warning", wrong % {"address": address, "lag": lag, "state": replica.get("state")}, remedy)


def _slots(report: ServerReport) -> Iterator[Advice]:
    if report.moved:
        wrong = _(
            "The node has at least %(count)d keys of slots that it does not own: slots move now, or an old snapshot "
            "brought the keys back, and nothing reads them."
        )
        remedy = f"redis-cli --cluster check {urlsplit(report.where).netloc.rpartition('@')[2]}"
        yield Advice("warning", wrong % {"count": report.moved}, remedy)


def _clock(report: ServerReport) -> Iterator[Advice]:
    if abs(report.clock) - report.clock_error > CLOCK:
        wrong = _("The server's clock differs from this machine's by %(seconds).1f s. Times of jobs follow the server.")
        remedy = _("Run chronyc tracking on both machines.")
        yield Advice("warning", wrong % {"seconds": report.clock}, remedy)


def _slow_commands(report: ServerReport) -> Iterator[Advice]:
    since = timezone.now() - RECENT
    slow = [entry for entry in report.slow if entry.seconds >= SLOW and entry.at >= since]
    if slow:
        worst = max(slow, key=lambda entry: entry.seconds)
        wrong = _("%(command)s kept the server busy for %(ms)d ms within the last hour: all other calls waited.")
        remedy = _("SLOWLOG GET 128 shows what was slow.")
        yield Advice("warning", wrong % {"command": worst.command, "ms": worst.seconds * 1000}, remedy)


def sentinel_advice(alias: str, *, timeout: float = 0.25) -> list[Advice]:
    """Return the advice about the Sentinels of a connection; none without Sentinels. Asks all of them at once.

    ``timeout`` is that of connecting and of reading, in seconds. Raises RedisUnavailable if none answers.
    """
    server = address(alias)
    if not server.sentinels:
        return []
    timeouts = {"socket_connect_timeout": timeout, "socket_timeout": timeout}
    with ThreadPoolExecutor(len(server.sentinels)) as threads:
        answers = list(threads.map(_answer, connection_factory.factory(server, timeouts).sentinels))
    states = [services.get(server.service) for services in answers if isinstance(services, dict)]
    missing = [
        f"{host}:{port} ({error})"
        for (host, port), error in zip(server.sentinels, answers, strict=True)
        if isinstance(error, str)
    ]
    if not states:
        raise RedisUnavailable(f"None of the Sentinels answers: {', '.join(missing)}.")
    advice = []
    if refusing := [each for each in missing if "no permissions" in each]:
        missing = [each for each in missing if each not in refusing]
        wrong = _("These Sentinels refuse the command: %(addresses)s.") % {"addresses": ", ".join(refusing)}
        user = server.sentinel_options.get("username") or "default"
        advice.append(Advice("warning", wrong, f"ACL SETUSER {user} {error_map.OF_SENTINELS}"))
    if missing:
        wrong = _("These Sentinels do not answer: %(addresses)s.") % {"addresses": ", ".join(missing)}
        advice.append(
            Advice(
                "warning",
                wrong,
                _("Start them, remove them from SENTINELS, or give their password in SENTINEL_KWARGS."),
            )
        )
    watching = [state for state in states if state]
    if len(watching) < len(states):
        wrong = _("Some Sentinels do not watch the service %(service)s.") % {"service": server.service}
        advice.append(Advice("error", wrong, f"SENTINEL MONITOR {server.service} HOST PORT QUORUM"))
    if watching and max(state["num-other-sentinels"] for state in watching) < 2:
        wrong = _("Fewer than three Sentinels watch the service: the loss of one may prevent a fail-over.")
        advice.append(Advice("warning", wrong, _("Run three Sentinels, on different machines.")))
    if watching and max(state["num-slaves"] for state in watching) < 1:
        wrong = _("The service has no replica, so a fail-over is impossible.")
        advice.append(Advice("warning", wrong, "REPLICAOF HOST PORT"))
    return advice


def _answer(client: Any) -> dict[str, Any] | str:
    """Return what a Sentinel knows of each service, or why it does not answer."""
    import redis

    try:
        services: dict[str, Any] = client.sentinel_masters()
    except (redis.RedisError, OSError) as error:
        return str(error).rstrip(".")
    finally:
        client.close()
    return services
