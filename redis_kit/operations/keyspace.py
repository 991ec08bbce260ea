"""The keys of this project: the memory of each component, and a search that can be continued page by page."""

import re
from collections.abc import Sequence
from hashlib import blake2b
from itertools import islice
from typing import Any, NamedTuple

from redis_kit.core import conf, connections, flow
from redis_kit.core.checks.servers import parsed
from redis_kit.core.client import error_map
from redis_kit.core.errors import InvalidValue, RedisFailure, RedisUnavailable
from redis_kit.core.flow import Flow
from redis_kit.core.settings import KitSettings
from redis_kit.core.steps import Batch, Call, TolerantBatch
from redis_kit.core.text import shortened

LOOKED_AT = 5000  # keys of the database: SCAN holds the server for 3 ms
SAMPLE = Call("SCAN", 0, "COUNT", LOOKED_AT)
LARGE = 65_536  # bytes of a key that does not stand for others, if it is one of a few
FEW = 10
SAMPLES = 5  # elements of a value, from which the server estimates the size of all
OTHER_PROGRAMS = "other programs"  # in place of a component: keys without the prefix of this project
COMPONENT = re.compile(r":\{(?!project\})([a-z]+)")  # "project" has the name of the project, for the checks
LIMIT = (1, 1000)
LONGEST = 128  # bytes of a pattern: servers compare it with each key
STEP = (200, 20_000)  # keys that one SCAN looks at: few if many of them match
GLOB = re.compile(rb"\\.|\[(?:\\.|[^]\\])+]|.", re.DOTALL)  # a character, a class of them, or a wildcard
COLON = b"(?::|%3A)"
CURSOR = re.compile(r"(\d{1,4})\.(\d{1,20})\.(\d{3,5})\.([0-9a-f]{16})?", re.ASCII)


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


def _by_component(page: Sequence[Any]) -> dict[str, list[bytes]]:
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
    keys = _by_component(page)
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


class KeyInfo(NamedTuple):
    """A key: name, component, type, seconds until it expires (None: never), and bytes as ``size`` (None: not known)."""

    name: str
    component: str
    type: str
    expires_in: float | None
    size: int | None


class KeyPage(NamedTuple):
    """Some of the keys that match, by name. ``cursor`` leads to more; it is "" at the end.

    ``share`` is the part of the database that was searched until here, 0 to 1. A page may be empty before the end.
    """

    keys: list[KeyInfo]
    cursor: str
    share: float


class _Text(NamedTuple):
    """A text to search for: the pattern of the server, which matches too much, and the exact one."""

    pattern: str
    exact: re.Pattern[bytes]


class _Place(NamedTuple):
    """Where a page begins: at a cursor of SCAN on a node, behind the match with this digest."""

    node: int = 0
    cursor: int = 0
    step: int = STEP[0]
    after: str = ""

    def __str__(self) -> str:
        return f"{self.node}.{self.cursor}.{self.step}.{self.after}"


def find_keys(
    text: str = "",
    *,
    component: str = "",
    cursor: str = "",
    limit: int = 50,
    using: str = "default",
    profile: connections.Profile = "request",
) -> KeyPage:
    """Return keys of this project whose names contain a text, from a page's ``cursor`` on: at most ``limit``.

    ``text`` is up to 128 bytes; ``*``, ``?`` and ``[...]`` in it are wildcards, and a colon also stands for the ``%3A``
    of an encoded name. Three round trips. The server looks at up to 40,000 keys for a page, so a page of a rare text is
    short or empty, and has a cursor all the same. No value is read: sizes are estimated from 5 samples. A key that is
    there throughout is found, and may be found twice, unless the server resizes its table within a page. Raises
    InvalidValue, RedisUnavailable.
    """
    if not LIMIT[0] <= limit <= LIMIT[1]:
        raise InvalidValue(f"limit must be {LIMIT[0]} to {LIMIT[1]}, not {shortened(limit)}.")
    place, wanted = _place(cursor), _wanted(text, component)
    client = connections.client(using, profile)
    nodes = sorted(client.primaries(), key=lambda node: node.where) if client.is_cluster else [client]
    if place.node >= len(nodes):
        raise InvalidValue(f"cursor names a node that does not exist: {shortened(cursor)}. Begin the search again.")
    keys, following = flow.run(_page(place, wanted, limit), nodes[place.node])
    if following is None:
        done = place.node + 1
        return KeyPage(keys, str(_Place(done)) if done < len(nodes) else "", done / len(nodes))
    return KeyPage(keys, str(following), (following.node + share_of(following.cursor)) / len(nodes))


def _page(place: _Place, wanted: _Text, limit: int) -> Flow[tuple[list[KeyInfo], _Place | None]]:
    """Read a page of one node: its keys, and where the next one begins. None at the end of the node."""
    names: list[bytes] = []
    following: _Place | None = place
    for _ in range(2):
        if following is None or len(names) >= limit:
            break
        matches, following = yield from _matches(following, wanted, limit - len(names))
        names += matches
    names.sort()
    if not names:
        return [], following
    details = [(("TYPE", name), ("PTTL", name), ("MEMORY", "USAGE", name, "SAMPLES", SAMPLES)) for name in names]
    replies = yield TolerantBatch([Call(*command) for commands in details for command in commands])
    keys = [_key(name, *replies[at * 3 : at * 3 + 3]) for at, name in enumerate(names)]
    return [key for key in keys if key.type != "none"], following


def _matches(place: _Place, wanted: _Text, limit: int) -> Flow[tuple[list[bytes], _Place | None]]:
    """Read the matches of one SCAN behind ``place.after``, at most ``limit``, and where to go on.

    They are in the order of their digests, so that a page can end between two of them, whatever is added or removed.
    """
    pattern = f"{conf.section(KitSettings).PREFIX}:{wanted.pattern}"
    cursor, scanned = yield Call("SCAN", place.cursor, "MATCH", pattern, "COUNT", place.step)
    names = list(filter(wanted.exact.search, scanned))
    digests = sorted((digest, name) for name in set(names) if (digest := _digest(name)) > place.after)
    chosen = [name for _digest, name in digests[:limit]]
    if len(digests) > limit:
        return chosen, place._replace(after=digests[limit - 1][0])
    step = round(place.step * limit / len(names)) if names else STEP[1]
    following = _Place(place.node, int(cursor), min(max(step, STEP[0]), STEP[1]))
    return chosen, following if following.cursor else None


def _key(name: bytes, kind: Any, milliseconds: Any, size: Any) -> KeyInfo:
    if isinstance(kind, RedisUnavailable):
        raise kind
    text = name.decode("utf-8", "backslashreplace")
    return KeyInfo(
        text,
        component_of(text),
        "?" if isinstance(kind, Exception) else kind.decode(),
        None if isinstance(milliseconds, Exception) or milliseconds < 0 else milliseconds / 1000,
        None if isinstance(size, Exception) else size,
    )


def _digest(name: bytes) -> str:
    return blake2b(name, digest_size=8).hexdigest()


def _wanted(text: str, component: str) -> _Text:
    text = text.removeprefix(f"{conf.section(KitSettings).PREFIX}:")
    if len(text.encode("utf-8", "replace")) > LONGEST or re.search("[\0\ud800-\udfff]", text):
        raise InvalidValue(f"text must be at most {LONGEST} bytes of valid Unicode without NUL, not {shortened(text)}.")
    if component and not re.fullmatch("[a-z]{1,40}", component):
        raise InvalidValue(f"component must be the name of a component, such as 'locks', not {shortened(component)}.")
    tokens = [_token(token) for token in GLOB.findall(text.encode())]
    pattern, exact = (b"".join(parts) for parts in zip(*tokens, strict=True)) if tokens else (b"", b"")
    begin = f"{{{component}[-:}}]*" if component else "*"
    return _Text(begin + (f"{pattern.decode()}*" if tokens else ""), re.compile(exact, re.DOTALL))


def _token(token: bytes) -> tuple[bytes, bytes]:
    """Return a part of a text as it is in a pattern of the server, and in the exact one."""
    if token in (b"*", b"?"):
        return token, {b"*": b".*", b"?": b"."}[token]
    if token == b":":
        return b"[:%]*", COLON
    if len(token) > 2 and token.startswith(b"["):
        characters = token.replace(b"[", b"\\[").replace(b"\\[", b"[", 1)
        return (token[:-1] + b"%]*", b"(?:" + characters + b"|%3A)") if b":" in token else (token, characters)
    if token == b"[":
        return b"\\[", rb"\["
    return token, re.escape(token[-1:])


def _place(cursor: str) -> _Place:
    if not cursor:
        return _Place()
    match = CURSOR.fullmatch(cursor)
    if match is None or int(match[2]) >= 2**64 or not STEP[0] <= int(match[3]) <= STEP[1]:
        raise InvalidValue(f"cursor must be that of a page before, not {shortened(cursor)}.")
    return _Place(int(match[1]), int(match[2]), int(match[3]), match[4] or "")
