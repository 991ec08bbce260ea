"""Bloom filters: errors, memory and speed, beside pottery and a server with BF.* if there are any.

python -m benchmarks.bench_bloom [ITEMS] [PATH of redis-server of a Redis Stack] [PATH of redisbloom.so]
"""

import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import django
import redis
from django.conf import settings


def measure(name: str, client: Any, call: Callable[[], object], values: int) -> float:
    """Print and return the wall time for each value, with that of the server."""
    client.config_resetstat()
    start = time.perf_counter()
    call()
    wall = time.perf_counter() - start
    stats = client.info("commandstats")
    spent = sum(entry["usec"] for command, entry in stats.items() if not command.startswith("cmdstat_config"))
    print(f"{name:44}{1e6 * wall / values:8.2f} us a value{spent / values:8.2f} us on the server")
    return wall


def main(items: int, binary: str = "redis-server", module: str = "") -> None:
    """Measure on a server of its own."""
    with tempfile.TemporaryDirectory() as folder:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        modules = ["--loadmodule", module] if module else []
        log = Path(folder, "log")
        command = [
            binary,
            "--port",
            str(port),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--dir",
            folder,
            "--logfile",
            str(log),
        ]
        server = subprocess.Popen([*command, *modules])
        try:
            client = redis.Redis(host="127.0.0.1", port=port)
            for _ in range(100):
                try:
                    client.ping()
                    break
                except redis.ConnectionError:
                    time.sleep(0.05)
            print(client.info("server")["redis_version"], f"items: {items:,}")
            settings.configure(
                REDIS_KIT={"CONNECTIONS": {"default": {"URL": f"redis://127.0.0.1:{port}/0"}}, "READ_TIMEOUT": 5.0},
                INSTALLED_APPS=["django.contrib.contenttypes", "redis_kit"],
            )
            django.setup()
            _kit(client, items)
            if module:
                _native(client, items)
            _pottery(client)
        finally:
            server.terminate()
            server.wait()


def _kit(client: Any, items: int) -> None:
    from redis_kit.bloom import BloomFilter

    seen = BloomFilter("bench", items)
    measure("kit: add_many", client, lambda: seen.add_many(range(items)), items)
    missing = sum(not answer for answer in seen.contains_many(range(items)))
    false = sum(seen.contains_many(range(10**9, 10**9 + 200_000)))
    key = next(client.scan_iter("*:bits:*"))
    optimum = items * 9.585 / 8
    info = seen.info()
    print(f"false negatives {missing}; false positives {false / 200_000:.5f} for 0.01; layers {info.layers}")
    print(f"memory {client.memory_usage(key) / optimum:.3f} of the optimum (bits alone {info.memory / optimum:.3f})")
    for name, first in (("present", 0), ("absent", 10**9)):
        batches = [range(first + 1000 * each, first + 1000 * each + 1000) for each in range(20)]
        measure(f"kit: contains_many(1000), {name}", client, lambda b=batches: [*map(seen.contains_many, b)], 20_000)
    seen.add_many(range(items, 4 * items))
    missing = sum(not answer for answer in seen.contains_many(range(4 * items)))
    false = sum(seen.contains_many(range(10**9, 10**9 + 200_000)))
    info = seen.info()
    print(
        f"at 4 times capacity: false negatives {missing}, false positives {false / 200_000:.5f}, layers {info.layers}"
    )


def _native(client: Any, items: int) -> None:
    client.execute_command("BF.RESERVE", "native", 0.01, items)
    for start in range(0, items, 1000):
        client.execute_command("BF.MADD", "native", *range(start, start + 1000))
    for name, first in (("present", 0), ("absent", 10**9)):
        batches = [range(first + 1000 * each, first + 1000 * each + 1000) for each in range(20)]
        measure(
            f"native: BF.MEXISTS of 1000, {name}",
            client,
            lambda b=batches: [client.execute_command("BF.MEXISTS", "native", *each) for each in b],
            20_000,
        )


def _pottery(client: Any) -> None:
    try:
        from pottery import BloomFilter
    except ImportError:
        print("pottery is not installed")
        return
    peer = BloomFilter(num_elements=100_000, false_positives=0.01, redis=client, key="pottery")
    for start in range(0, 5000, 1000):
        peer.update(range(start, start + 1000))
    for name, first in (("present", 0), ("absent", 10**9)):
        batches = [range(first + 1000 * each, first + 1000 * each + 1000) for each in range(5)]
        measure(
            f"pottery: contains_many of 1000, {name}",
            client,
            lambda b=batches: [list(peer.contains_many(*each)) for each in b],
            5000,
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000, *sys.argv[2:])
