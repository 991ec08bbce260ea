"""Bloom filters: errors, memory, and the time for a value, beside pottery and BF.MEXISTS if a server has it."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from math import log
from pathlib import Path
from statistics import median
from typing import Any

import redis

from benchmarks.support.measurement import site
from redis_kit.bloom import BloomFilter

BATCH, ROUNDS = 1000, 40
ABSENT = 10**9  # values from here on were never added
SAMPLE = 200_000
ERROR = 0.01
PEER = Path(__file__).parent / "support" / "peers" / "with_pottery.py"


def run(items: int = 1_000_000) -> None:
    """Print the figures of a filter with this capacity; at four times it, too."""
    with site() as client:
        seen = BloomFilter("bench", items, ERROR)
        seen.add(0)
        print(f"{'':40}{'us a value':>12}{'on the server':>16}")
        _print(client, "add_many(1000), new", _batches(seen.add_many, 0, items))
        _print_errors(client, seen, items)
        kit = [
            _print(client, "contains_many(1000), present", _batches(seen.contains_many, 0, BATCH * ROUNDS)),
            _print(client, "contains_many(1000), absent", _batches(seen.contains_many, ABSENT, BATCH * ROUNDS)),
        ]
        _print(client, "EVALSHA of nothing", [lambda: client.eval("return 1", 0)] * ROUNDS)
        _print_native(client, items)
        if peer := os.environ.get("POTTERY"):
            _print_pottery(client, peer, sum(kit) / 2)
        seen.add_many(range(items, 4 * items))
        _print_errors(client, seen, 4 * items)


def _batches(call: Callable[[Any], object], first: int, values: int) -> list[Callable[[], object]]:
    starts = range(first, first + values, BATCH)
    return [lambda start=start: call(range(start, start + BATCH)) for start in starts]  # type: ignore[misc]


def _print(client: Any, name: str, calls: list[Callable[[], object]]) -> float:
    """Print and return the median time for a value, and that of the server."""
    calls[0]()
    client.config_resetstat()
    times = []
    for call in calls:
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    stats = client.info("commandstats")
    outer = [entry["usec"] for name, entry in stats.items() if name in ("cmdstat_evalsha", "cmdstat_eval")]
    server = sum(outer or [entry["usec"] for name, entry in stats.items() if "bf." in name]) / len(calls)
    print(f"{name:40}{1e6 * median(times) / BATCH:12.3f}{server / BATCH:16.3f}", flush=True)
    return 1e6 * median(times) / BATCH


def _print_errors(client: Any, seen: BloomFilter, items: int) -> None:
    missing = sum(not answer for answer in seen.contains_many(range(items)))
    false = sum(seen.contains_many(range(ABSENT, ABSENT + SAMPLE))) / SAMPLE
    used = sum(client.memory_usage(key, samples=0) for key in client.scan_iter("*{bloom:bench}*"))
    optimum = items * -log(ERROR) / log(2) ** 2 / 8
    wrong = false / ERROR
    print(f"\n{items:,} values: {missing} missing; {false:.5f} of others found, {wrong:.2f} of the error wanted")
    print(f"layers {seen.info().layers}; memory {used:,} bytes, {used / optimum:.2f} of the optimum of one filter\n")


def _print_native(client: Any, items: int) -> None:
    try:
        client.execute_command("BF.RESERVE", "native", ERROR, items)
    except redis.ResponseError:
        print("BF.MEXISTS: the server has no such command")
        return
    for call in _batches(lambda values: client.execute_command("BF.MADD", "native", *values), 0, items):
        call()
    for name, first in (("present", 0), ("absent", ABSENT)):
        calls = _batches(lambda values: client.execute_command("BF.MEXISTS", "native", *values), first, BATCH * ROUNDS)
        _print(client, f"BF.MEXISTS of 1000, {name}", calls)


def _print_pottery(client: Any, python: str, kit: float) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:  # pottery can't use the Unix socket
        port = free.getsockname()[1]
    client.config_set("port", port)
    command = [python, str(PEER), f"redis://127.0.0.1:{port}/0", str(BATCH), str(ROUNDS // 4), str(100_000)]
    peer = json.loads(subprocess.run(command, stdout=subprocess.PIPE, stderr=sys.stderr, check=True).stdout)
    print(f"{'pottery: contains_many of 1000':40}{peer:12.3f}{'':16} {peer / kit:.1f} times the kit's time")
