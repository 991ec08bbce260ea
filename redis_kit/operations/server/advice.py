"""Advice about a server and its Sentinels: the faults that they show, and what to type."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from math import ceil
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from django.utils import timezone
from django.utils.translation import gettext as _

from redis_kit.core.checks.servers import cluster_problems, info_problems, outdated
from redis_kit.core.client import connection_factory, error_map
from redis_kit.core.client.addresses import address
from redis_kit.core.errors import RedisUnavailable
from redis_kit.operations.server.report import ServerReport, key_prefix

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
                granted += [f"&{key_prefix(name)}*" for name in labels]
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
