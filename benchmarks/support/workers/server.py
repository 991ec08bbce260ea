"""A server on loopback TCP, with measurements of it: round trips, memory, commands, its data."""

import os
import re
import socket
import statistics
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from threading import Thread
from typing import NamedTuple

import redis

from benchmarks.support.measurement import configure, describe, pinned
from benchmarks.support.workers import cpu_time
from redis_kit.core.embedded.server import EmbeddedServer

PINGS = 0.3  # seconds
TASKS = "benchmarks.support.operations.workflows"
END = b"the end of listening"
LINE = re.compile(rb"\+\d+\.\d+ \[\d+ ([^\]]+)\] \"([^\"]*)\"")
SET_UP = {b"CLIENT", b"HELLO", b"SELECT", b"PING", b"SCRIPT", b"INFO", b"MONITOR"}

State = list[tuple[bytes, int, bytes]]


class Ran(NamedTuple):
    """Commands by name, without those of new connections."""

    sent: Counter[str]  # by clients
    inside: Counter[str]  # by scripts


class Pings(NamedTuple):
    """BareHandOff round trips."""

    rate: float  # a second
    work: float  # processor time of one, client and server, us


class Server:
    """One server, empty and without persistence."""

    def __init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        arguments = ("--port", str(self.port), "--bind", "127.0.0.1", "--slowlog-max-len", "10000")
        self._embedded = EmbeddedServer(extra_args=arguments).start()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.client = redis.Redis.from_url(self.url)
        self.pid = int(self.client.info("server")["process_id"])

    def close(self) -> None:
        """Stop the server."""
        self.client.close()
        self._embedded.stop()

    def pings(self, length: float = PINGS) -> Pings:
        """Measure bare round trips, one after the other, for ``length`` seconds."""
        self.client.ping()
        both = (os.getpid(), self.pid)
        before, began, count = cpu_time.seconds(both), time.perf_counter(), 0
        while (now := time.perf_counter()) - began < length:
            self.client.ping()
            count += 1
        return Pings(count / (now - began), (cpu_time.seconds(both) - before) / count * 1e6)

    def state(self) -> State:
        """Return all keys with their values and TTLs in ms (0: no expiry)."""
        keys = list(self.client.scan_iter(count=1000))
        with self.client.pipeline(transaction=False) as batch:
            for key in keys:
                batch.pttl(key).dump(key)
            replies = batch.execute()
        return [(key, max(0, replies[2 * at]), replies[2 * at + 1]) for at, key in enumerate(keys)]

    def flush(self) -> None:
        """Delete all keys, and free their memory before this returns."""
        self.client.execute_command("FLUSHALL", "SYNC")

    def restore(self, state: State) -> None:
        """Replace all keys by these."""
        self.flush()
        with self.client.pipeline(transaction=False) as batch:
            for key, left, value in state:
                batch.restore(key, left, value)
            batch.execute()

    def used(self) -> int:
        """Return the memory of the data in bytes."""
        return int(self.client.info("memory")["used_memory"])

    @contextmanager
    def listening(self) -> Iterator[Ran]:
        """Collect the commands that run during the block. MONITOR slows the server: use it to count, not to time."""
        ran = Ran(Counter(), Counter())
        with socket.create_connection(("127.0.0.1", self.port)) as monitor:
            monitor.sendall(b"MONITOR\r\n")
            monitor.recv(64)
            thread = Thread(target=_tally, args=(monitor, ran), daemon=True)
            thread.start()
            yield ran
            self.client.echo(END)
            thread.join(20)

    @contextmanager
    def longest(self) -> Iterator[list[float]]:
        """Collect the ms of each script that took a millisecond or more during the block."""
        durations: list[float] = []
        before = self.client.config_get("slowlog-log-slower-than")
        self.client.config_set("slowlog-log-slower-than", 1000)
        self.client.slowlog_reset()
        yield durations
        names = (b"EVAL", b"FCALL")
        log = [entry for entry in self.client.slowlog_get(10_000) if entry["command"].startswith(names)]
        durations.extend(entry["duration"] / 1000 for entry in log)
        self.client.config_set(*before.popitem())


@contextmanager
def on_tcp(*, one_core: bool) -> Iterator[Server]:
    """Run a Django site with its own server, and workers on the same core or on all cores."""
    configure()
    from django.test.utils import override_settings

    with pinned() if one_core else nullcontext(), closing(Server()) as server:
        options = {"CONNECTIONS": {"default": {"URL": server.url, "TEST": True}}, "READ_TIMEOUT": 5}
        with override_settings(REDIS_KIT=options | {"QUEUES": {"IMPORTS": [TASKS]}}):
            describe(server.client, "and workers on one of them" if one_core else "and workers on all of them")
            yield server


def _tally(monitor: socket.socket, ran: Ran) -> None:
    rest = b""
    while chunk := monitor.recv(1 << 20):
        *lines, rest = (rest + chunk).split(b"\r\n")
        for line in lines:
            if END in line:
                return
            if (match := LINE.match(line)) and match[2].upper() not in SET_UP:
                (ran.inside if match[1] == b"lua" else ran.sent)[match[2].decode().upper()] += 1


def percentile(values: list[float], share: float) -> float:
    """Return the value below which this share lies."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def median(values: list[float]) -> float:
    """Return the median."""
    return statistics.median(values)
