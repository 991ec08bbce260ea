"""Mailboxes: delivery, sends to small and large chats, unread counts, and peers: Redis Streams and channels_redis."""

import os
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.support.measurement import site
from redis_kit.mailbox import Chat, Chats

ROUNDS = 500
MEMBERS, BODY = 50, "x" * 100
PEER = Path(__file__).parent / "support" / "peers" / "with_channels.py"


def run(messages: int = 1000) -> None:
    """Print the figures; ``messages`` of them to a group of 50."""
    with site() as client:
        _print_delivery()
        _print_sends(client)
        _print_unread()
        print(f"\n{messages:,} messages of 100 bytes, {MEMBERS} members who read each of them in pages of 100")
        print(f"{'':24}{'us a message':>16}{'us for each reader':>20}{'bytes a message':>18}{'bytes a member':>16}")
        _print_kit(client, messages)
        _print_streams(client, messages)
        if peer := os.environ.get("CHANNELS"):
            _print_channels(client, peer, messages)


def _print_delivery() -> None:
    """Print the time from the return of send() to that of fetch() in another process."""
    chat = Chat("delivery")
    chat.create(["reader"])
    reading, writing = os.pipe()
    if not (pid := os.fork()):
        try:
            for _ in range(ROUNDS):
                found = chat.fetch("reader", timeout=10)
                os.write(writing, f"{time.monotonic()}\n".encode())
                chat.ack("reader", found.messages[-1])
        finally:
            os._exit(0)
    times = []
    with os.fdopen(reading) as arrivals:
        for _ in range(ROUNDS):
            time.sleep(0.005)
            chat.send(None, BODY)
            sent = time.monotonic()
            times.append(max(0.0, float(arrivals.readline()) - sent))
    os.waitpid(pid, 0)
    times.sort()
    print(f"delivery to a waiting process: p50 {1e3 * median(times):.2f} ms, p99 {1e3 * times[-ROUNDS // 100]:.2f} ms")


def _print_sends(client: Any) -> None:
    found = {}
    for members in (2, 1000):
        chat = Chat(f"of {members}")
        chat.create([f"m{number}" for number in range(members)])
        chat.send(None, BODY)
        server, wall = _cost(client, lambda chat=chat: chat.send(None, BODY), 2000)  # type: ignore[misc]
        found[members] = server
        print(f"a send to {members:5,} members: {server:6.1f} us on the server, {wall:6.1f} us in all")
    print(f"ratio on the server: {found[1000] / found[2]:.2f}")


def _print_unread() -> None:
    for number in range(500):
        chat = Chat(f"room {number}")
        chat.create(["many"])
        chat.send(None, BODY)
    times = []
    for _ in range(100):
        began = time.perf_counter()
        assert len(Chats("many").unread()) == 500
        times.append(time.perf_counter() - began)
    print(f"unread counts of 500 chats, one round trip: {1e3 * median(times):.2f} ms")


def _print_kit(client: Any, messages: int) -> None:
    chat, members = Chat("office"), [f"m{number}" for number in range(MEMBERS)]
    empty = _memory(client)
    chat.create(members)
    joined = _memory(client)
    sending, _ = _cost(client, lambda: chat.send(None, BODY), messages)
    stored = _memory(client)

    def read() -> None:
        for member in members:
            while found := chat.fetch(member).messages:
                chat.ack(member, found[-1])

    reading, _ = _cost(client, read, 1)
    _print("redis_kit", sending, reading / messages / MEMBERS, (stored - joined) / messages, (joined - empty) / MEMBERS)
    print(f"{'':24}after all have read, {max(0, _memory(client) - joined):,} bytes are left")


def _print_streams(client: Any, messages: int) -> None:
    groups = [f"m{number}" for number in range(MEMBERS)]
    empty = _memory(client)
    client.xgroup_create("stream", groups[0], mkstream=True)
    for group in groups[1:]:
        client.xgroup_create("stream", group)
    joined = _memory(client)
    sending, _ = _cost(client, lambda: client.xadd("stream", {"body": BODY}), messages)
    stored = _memory(client)

    def read() -> None:
        for group in groups:
            while found := client.xreadgroup(group, "one", {"stream": ">"}, count=100):
                client.xack("stream", group, *(id for id, _fields in found[0][1]))

    reading, _ = _cost(client, read, 1)
    _print(
        "Redis Streams", sending, reading / messages / MEMBERS, (stored - joined) / messages, (joined - empty) / MEMBERS
    )
    print(f"{'':24}after all have read, {max(0, _memory(client) - joined):,} bytes are left")


def _print_channels(client: Any, python: str, messages: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    client.config_set("port", port)
    empty = _memory(client)
    command = [python, str(PEER), f"redis://127.0.0.1:{port}/0", str(MEMBERS), str(messages), str(len(BODY))]
    client.config_resetstat()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as peer:
        assert peer.stdin is not None
        assert peer.stdout is not None
        peer.stdout.readline()
        sending, stored = _server_time(client) / messages, _memory(client)
        client.config_resetstat()
        peer.stdin.write("\n")
        peer.stdin.flush()
        peer.stdout.readline()
        reading = _server_time(client)
    _print("channels_redis", sending, reading / messages / MEMBERS, (stored - empty) / messages, 0)


def _cost(client: Any, call: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Return the microseconds of a call on the server, and in all."""
    client.config_resetstat()
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return _server_time(client) / rounds, 1e6 * median(times)


def _server_time(client: Any) -> float:
    """Return the microseconds of all commands; those inside scripts are part of their script."""
    stats = client.info("commandstats")
    names = {"cmdstat_evalsha", "cmdstat_eval"} & stats.keys() or stats.keys()
    skipped = {"cmdstat_config|resetstat", "cmdstat_info", "cmdstat_memory|purge"}
    return float(sum(stats[name]["usec"] for name in names if name not in skipped))


def _memory(client: Any) -> int:
    """Return the bytes of all keys, those of the ids of calls left out."""
    return sum(client.memory_usage(key, samples=0) or 0 for key in client.scan_iter(count=1000))


def _print(name: str, sending: float, reading: float, message: float, member: float) -> None:
    print(f"{name:24}{sending:16.1f}{reading:20.2f}{message:18.0f}{member:16.0f}", flush=True)
