"""The memory of each component, estimated from some of the keys."""

import re
from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple

from redis_kit.core import conf, connections, flow
from redis_kit.core.checks.servers import parsed
from redis_kit.core.client import error_map
from redis_kit.core.errors import RedisFailure
from redis_kit.core.flow import Flow
from redis_kit.core.settings import KitSettings
from redis_kit.core.steps import Batch, Call, TolerantBatch

LOOKED_AT = 5000  # keys of the database: SCAN holds the server for 3 ms
SAMPLE = Call("SCAN", 0, "COUNT", LOOKED_AT)
LARGE = 65_536  # bytes of a key that does not stand for others, if it is one of a few
FEW = 10
SAMPLES = 5  # elements of a value, from which the server estimates the size of all
OTHER_PROGRAMS = "other programs"  # in place of a component: keys without the prefix of this project
COMPONENT = re.compile(r":\{(?!project\})([a-z]+)")  # "project" has the name of the project, for the checks


class ComponentMemory(NamedTuple):
    """The estimated keys of a component, and their bytes as ``size``. Exact if ``share``, the part looked at, is 1.

    ``component`` is "" for keys with the prefix of the project that belong to no component, and ``other programs`` for
    keys without the prefix. ``size`` is 0 if it could not be read, as an ACL may forbid for keys of other programs.
    """

    component: str
    keys: int
    size: int
    share: float


class KeySample(NamedTuple):
    """The memory of the components of some keys, or why it can't be read.

    ``moved`` is the number of keys whose slots the node of a Cluster does not own, or that it can't serve.
    """

    memory: list[ComponentMemory]
    failure: RedisFailure | None
    moved: int


def component_memory(using: str = "default", *, profile: connections.Profile = "request") -> list[ComponentMemory]:
    """Return the estimated memory of each component, the largest first; of all nodes of a Cluster together.

    Two round trips to each server. Up to 5,000 keys of the database are measured, in about 10 ms of the server's time.
    Of a larger database the rest is estimated; large keys in it may be missing.
    """
    client = connections.client(using, profile)
    nodes = client.primaries() if client.is_cluster else [client]
    return merged([flow.run(_read(), node) for node in nodes])


def merged(nodes: Sequence[Sequence[ComponentMemory]]) -> list[ComponentMemory]:
    """Return the memory of several servers as one."""
    rows: dict[str, ComponentMemory] = {}
    for row in (row for node in nodes for row in node):
        before = rows.get(row.component, ComponentMemory(row.component, 0, 0, 1.0))
        share = min(before.share, row.share)
        rows[row.component] = ComponentMemory(row.component, before.keys + row.keys, before.size + row.size, share)
    return sorted(rows.values(), key=lambda row: -row.size)


def _read() -> Flow[list[ComponentMemory]]:
    total, page, info = yield Batch([Call("DBSIZE"), SAMPLE, Call("INFO", "memory")], lenient=True)
    for reply in (total, page):
        if isinstance(reply, Exception):
            raise reply
    used = 0 if isinstance(info, Exception) else float(parsed(info).get("used_memory", 0))
    sample = yield from measured(page, total, used)
    if sample.failure:
        raise sample.failure
    return sample.memory


def component_of(key: str) -> str:
    """Return the component of a key of the kit; "" if it belongs to none."""
    prefix = conf.section(KitSettings).PREFIX
    match = COMPONENT.match(key, len(prefix)) if key.startswith(prefix) else None
    return match[1] if match else ""


def share_of(cursor: int) -> float:
    """Return the part of the keys that SCAN has passed at a cursor: 0 to 1. Its bits are a fraction, reversed.

    See dictScan() in dict.c of Redis, by Pieter Noordhuis.
    """
    return sum(2.0 ** -(place + 1) for place in range(cursor.bit_length()) if cursor >> place & 1)


def scanning(cursor: int, pattern: str, count: int) -> Call:
    """Return the step that reads keys of this project from a cursor on. ``pattern`` is of what follows the prefix."""
    return Call("SCAN", cursor, "MATCH", f"{conf.section(KitSettings).PREFIX}:{pattern}", "COUNT", count)


def by_component(page: Sequence[Any]) -> dict[str, list[bytes]]:
    """Return the keys in a reply of SCAN, by component; those of other programs come last."""
    prefix = f"{conf.section(KitSettings).PREFIX}:"
    grouped: dict[str, list[bytes]] = {}
    foreign: list[bytes] = []
    for key in page[1]:
        name = key.decode("utf-8", "replace")
        of_component = grouped.setdefault(component_of(name), []) if name.startswith(prefix) else foreign
        of_component.append(key)
    return grouped | ({OTHER_PROGRAMS: foreign} if foreign else {})


def measured(page: Sequence[Any], total: int, used: float) -> Flow[KeySample]:
    """Return the memory of the components in a reply of SCAN from the cursor 0, the largest first.

    ``total`` is the number of keys, and ``used`` the memory of the server; 0 if it is not known. A few large keys of a
    component count as they are; the others stand for those that were not looked at.
    """
    keys = by_component(page)
    calls = [Call("MEMORY", "USAGE", key, "SAMPLES", SAMPLES) for of_component in keys.values() for key in of_component]
    sizes = (yield TolerantBatch(calls)) if calls else []
    # An ACL may forbid to ask for keys of other programs.
    failure = sizes[0] if sizes and next(iter(keys)) != OTHER_PROGRAMS else None
    cursor, left, rows = int(page[0]), iter(sizes), []
    share = min(1.0, len(page[1]) / total if total else share_of(cursor)) if cursor else 1.0
    for name, of_component in keys.items():
        own_sizes = [size for size in islice(left, len(of_component)) if isinstance(size, int)]
        large = [size for size in own_sizes if size >= LARGE]
        single = sum(large) if len(large) < FEW else 0
        size = single + (sum(own_sizes) - single) / share
        rows.append(ComponentMemory(name, round(len(of_component) / share), round(size), share))
    most = used / max(sum(row.size for row in rows), 1) if used else 1.0
    if share < 1 and most < 1:
        rows = [row._replace(size=int(row.size * most)) for row in rows]
    rows.sort(key=lambda row: -row.size)
    moved = sum(isinstance(size, error_map.MOVED) for size in sizes)
    return KeySample(rows, failure if isinstance(failure, RedisFailure) else None, moved)
