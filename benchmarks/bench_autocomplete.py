"""Autocomplete: times, answers beside those of a plain list, memory beside walrus, and the field of an admin."""

import contextlib
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import partial
from math import frexp
from pathlib import Path
from shutil import which
from typing import Any

import redis

from benchmarks.support import names
from benchmarks.support.measurement import site
from redis_kit.autocomplete import Autocomplete
from redis_kit.autocomplete.words import query_words, words
from redis_kit.core import connections

PARTS = ("memory", "searches", "admin")
ROUNDS, QUERIES, SAMPLE, ROWS = 2000, 10_000, 100_000, 200_000
CAPPED = 9_000  # terms from which on a search may end before it has read all of them
WRITES = ("zadd", "zrem", "hset", "hdel", "set", "hincrby", "unlink", "del")
PEER = Path(__file__).parent / "support" / "peers" / "with_walrus.py"


def run(parts: str = ",".join(PARTS), entries: int = 1_000_000) -> None:
    """Print the memory of an entry, the searches in an index with this number of entries, and the admin's field."""
    with site(one_core=False) as client:
        if "memory" in parts:
            _print_memory(client, "Valkey")
            with _debian_redis() as other:
                if other:
                    _print_memory(other, "Redis 7.0")
            client.execute_command("FLUSHALL", "SYNC")
        if "searches" in parts:
            index, began = Autocomplete("people"), time.perf_counter()
            index.rebuild(names.entries(entries))
            seconds = time.perf_counter() - began
            print(
                f"\n{entries:,} entries in six scripts: rebuilt in {seconds:.0f} s, {entries / seconds:,.0f} a second\n"
            )
            with _tcp(client):
                _print_times(client, index)
            _print_differences(index, entries)
        if "admin" in parts:
            client.execute_command("FLUSHALL", "SYNC")
            subprocess.run(
                [sys.executable, "-m", "benchmarks.support.admin_field", str(ROWS), _url(client)], check=True
            )


def _print_memory(client: Any, server: str) -> None:
    """Print the bytes for an entry of twelve characters."""
    figures = {}
    for name, text in (("one word", _one_word), ("two words", _two_words)):
        client.execute_command("FLUSHALL", "SYNC")
        before = client.info("memory")["used_memory"]
        _fill(client, ((id, text(random.Random(id))) for id in range(SAMPLE)))
        figures[name] = (client.info("memory")["used_memory"] - before) / SAMPLE
    if python := os.environ.get("WALRUS"):
        with _tcp(client) as url:
            command = [python, str(PEER), url, str(SAMPLE // 20)]
            figures["walrus, two words"] = json.loads(
                subprocess.run(command, stdout=subprocess.PIPE, stderr=sys.stderr, check=True).stdout
            )
    print(f"bytes for an entry of 12 characters, {server}: ", end="")
    print(", ".join(f"{name} {figure:,.0f}" for name, figure in figures.items()), flush=True)


def _fill(client: Any, pairs: Iterator[tuple[int, str]]) -> None:
    from django.test.utils import override_settings

    with override_settings(REDIS_KIT={"CONNECTIONS": {"default": {"URL": _url(client)}}, "READ_TIMEOUT": 5}):
        Autocomplete("people").add_many(pairs)


def _url(client: Any) -> str:
    return f"unix://{client.connection_pool.connection_kwargs['path']}"


def _one_word(rng: random.Random) -> str:
    return "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=12)).title()


def _two_words(rng: random.Random) -> str:
    first, last = ("".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=size)).title() for size in (4, 7))
    return f"{first} {last}"


@contextlib.contextmanager
def _debian_redis() -> Iterator[Any]:
    """Run the redis-server of the system, if there is one."""
    if not (program := which("redis-server")):
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/socket"
        process = subprocess.Popen(
            [program, "--port", "0", "--unixsocket", path, "--save", "", "--dir", folder], stdout=subprocess.DEVNULL
        )
        client = redis.Redis(unix_socket_path=path)
        try:
            for _ in range(200):
                with contextlib.suppress(redis.ConnectionError):
                    client.ping()
                    break
                time.sleep(0.05)
            yield client
        finally:
            client.close()
            process.terminate()
            process.wait()


@contextlib.contextmanager
def _tcp(client: Any) -> Iterator[str]:
    """Let the server listen on a port, and the kit use it, as a site on another machine would."""
    from django.test.utils import override_settings

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    client.config_set("port", port)
    url = f"redis://127.0.0.1:{port}/0"
    with override_settings(REDIS_KIT={"CONNECTIONS": {"default": {"URL": url}}, "READ_TIMEOUT": 5}):
        yield url
    client.config_set("port", 0)


def _print_times(client: Any, index: Autocomplete) -> None:
    """Print the times of searches beside those of a PING by the kit's client and by redis-py, one after the other."""
    sample = [name for _id, name, _weight in names.entries(ROUNDS, seed=2)]
    kinds = {
        '"a", which half of all share': ["a"] * ROUNDS,
        "one letter": [name[0] for name in sample],
        "three letters": [name[:3] for name in sample],
        "a word": [name.split()[0] for name in sample],
        "two words": [f"{name.split()[1][:2]} {name[:2]}" for name in sample],
        "nothing is found": [f"qq{name}" for name in sample],
        "no text": [""] * ROUNDS,
    }
    ping, other = connections.client("default", "request"), redis.Redis(port=client.config_get("port")["port"])
    index.search("a")
    titles = ("PING p50", "p99", "redis-py", "p99", "search", "p99", "to PING", "p99", "to redis-py", "p99")
    print(f"{'10 hits at most; us':32}" + "".join(f"{title:>12}" for title in titles))
    for kind, queries in kinds.items():
        client.config_resetstat()
        times: tuple[list[float], ...] = ([], [], [])
        for query in queries:
            calls = (partial(ping.call, "PING"), other.ping, partial(index.search, query))
            for each, call in zip(times, calls, strict=True):
                began = time.perf_counter()
                call()
                each.append(time.perf_counter() - began)
        written = [name for name in WRITES if f"cmdstat_{name}" in client.info("commandstats")]
        assert not written, written
        figures = [_percentile(each, share) for each in times for share in (0.5, 0.99)]
        ratios = [figures[at] / figures[at % 2 + base] for base in (0, 2) for at in (4, 5)]
        print(f"{kind:32}" + "".join(f"{figure:12.0f}" for figure in figures), end="")
        print("".join(f"{ratio:12.1f}" for ratio in ratios), flush=True)


def _percentile(times: Sequence[float], share: float) -> float:
    return 1e6 * sorted(times)[int(len(times) * share)]


def _print_differences(index: Autocomplete, entries: int) -> None:
    """Compare random searches with those of a sorted list for each magnitude of weights."""
    lists: dict[int, list[bytes]] = {}
    for id, name, weight in names.entries(entries):
        parts = words(name)
        for place in range(len(parts)):
            rotated = " ".join(parts[place:] + parts[:place])
            lists.setdefault(-frexp(weight)[1], []).append(f"{rotated}\0{id}".encode())
    for rotations in lists.values():
        rotations.sort()

    def expected(query: str) -> tuple[list[str], int]:
        first, *others = query_words(query) or [""]
        ids, terms = dict[str, None](), 0
        for _level, rotations in sorted(lists.items()):
            low, high = (bisect_left(rotations, first.encode() + end) for end in (b"", b"\xff"))
            terms += high - low
            for place in range(low, high):
                if len(ids) == 10:
                    break
                rotated, id = rotations[place].decode().split("\0")
                left = rotated.split()[1:]
                if all(_take(left, other) for other in others):
                    ids[id] = None
        return list(ids), terms

    rng, wrong, capped = random.Random(3), 0, 0
    for _ in range(QUERIES):
        parts = names.name(rng).split()
        query = " ".join(part[: rng.randint(1, 5)] for part in rng.sample(parts, rng.randint(1, 2)))
        right, terms = expected(query)
        answer = [hit.id for hit in index.search(query)]
        is_capped = len(answer) < 10 and terms > CAPPED
        capped += is_capped
        wrong += answer != (right[: len(answer)] if is_capped else right)
    print(f"\n{QUERIES:,} random searches beside a plain list: {wrong} differ; {capped} were cut after 10,000 terms")


def _take(left: list[str], other: str) -> bool:
    place = next((place for place, word in enumerate(left) if word.startswith(other)), None)
    if place is not None:
        del left[place]
    return place is not None
