"""The state of a server, read without changing anything."""

import re
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import redis_kit
from redis_kit.core import conf, connections, flow, scripts
from redis_kit.core.checks.servers import parsed
from redis_kit.core.client import addresses
from redis_kit.core.component import components
from redis_kit.core.errors import PermissionDenied, RedisFailure, RedisUnavailable
from redis_kit.core.flow import Flow
from redis_kit.core.settings import KitSettings
from redis_kit.core.steps import Call, TolerantBatch
from redis_kit.operations.keys.sample import SAMPLE, ComponentMemory, measured

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
            reports.append(_unread(using, node.where, error.reason or str(error)))
    if len(failures) == len(nodes):
        raise failures[0]
    return reports


def _unread(using: str, where: str, error: str) -> ServerReport:
    return ServerReport(using, where, {}, {}, None, 0.0, 0.0, False, "", [], (), [], [], error=error)


def _report(using: str, where: str, sample: bool) -> Flow[ServerReport]:
    before = time.time()
    rights = asking(using)
    answers = yield TolerantBatch([*READ.values(), *rights.values(), *([SAMPLE] if sample else [])])
    after = time.time()
    refused = tuple(name for name, reply in zip(READ, answers, strict=False) if isinstance(reply, Exception))
    unavailable = next((reply for reply in answers if isinstance(reply, RedisUnavailable)), None)
    if unavailable is not None:
        unavailable.using = using
        raise unavailable
    replies = {name: _or_none(reply) for name, reply in zip(READ, answers, strict=False)}
    info = parsed(replies["info"] or b"")
    missing = missing_rights({name: _or_none(reply) for name, reply in zip(rights, answers[len(READ) :], strict=False)})
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
        _text(replies["acl|whoami"] or b"") or addresses.address(using).username,
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


def asking(using: str) -> dict[str, Call]:
    """Return the step that asks for the rights of each component, by its name. It runs with the source, as EVAL."""
    of_all = ["ping", "type", *(["asking"] if addresses.address(using).cluster else [])]
    asked = {}
    for component in components():
        if component.commands:
            key = f"{key_prefix(component.label)}{'' if component.one_slot else ':x'}}}:x"
            asked[component.label] = Call(*LIST_MISSING([], [key, *of_all, *component.commands.split()]).with_source())
    return asked


def missing_rights(replies: Mapping[str, Any]) -> list[MissingRights]:
    """Return the rights that are missing; none for replies that are None."""
    missing = []
    with_channels = {each.label for each in components() if "ssubscribe" in each.commands.split()}
    for component, reply in replies.items():
        has_keys, commands = reply or (1, ())
        if not has_keys or commands:
            keys = "" if has_keys else f"~{key_prefix(component)}*"
            if keys and component in with_channels:
                keys += f" &{key_prefix(component)}*"
            missing.append(MissingRights(component, keys, tuple(name.decode() for name in commands)))
    return missing


def key_prefix(component: str) -> str:
    """Return how the keys and the channels of a component begin."""
    return f"{conf.section(KitSettings).PREFIX}:{{{component}"
