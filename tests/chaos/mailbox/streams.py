"""Server-Sent Events: each client gets each message once, while the site and the Redis server restart.

``python -m tests.chaos.mailbox.streams 2000 100`` opens 2,000 streams of one uvicorn process, half of them of one chat
and the others of 50 more, and sends 100 messages to each chat. In between, both processes are restarted. The exit code
is 1 if a message was missed, doubled or out of order, or if the process had 20 connections to Redis or more.
"""

import argparse
import asyncio
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import redis

from redis_kit.core.errors import RedisKitError
from redis_kit.mailbox import Chat
from tests.fixtures.process import free_port

ROOT = Path(__file__).parents[3]
CHATS = 50
MOST_CONNECTIONS = 20


class Outcome(NamedTuple):
    """What went wrong, the connections of the process at most, and the bytes of its memory for each client."""

    wrong: list[str]
    connections: int
    bytes_per_client: float
    seconds: float


class Client:
    """A browser: it connects again with the id of the last message, as EventSource does."""

    def __init__(self, port, chat, member):
        self.port, self.chat, self.member = port, chat, member
        self.last_id = ""
        self.numbers = []
        self.connects = 0

    async def run(self, wanted):
        """Read until the last message came."""
        while not self.numbers or self.numbers[-1] < wanted:
            with contextlib.suppress(OSError, EOFError, asyncio.IncompleteReadError):
                await self._read(wanted)
            await asyncio.sleep(0.2)

    async def _read(self, wanted):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            last = f"Last-Event-ID: {self.last_id}\r\n" if self.last_id else ""
            path = f"/{self.chat}/?member={self.member}"
            writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n{last}\r\n".encode())
            status = await reader.readline()
            if b" 200 " not in status:
                return
            self.connects += 1
            id_ = ""
            while not self.numbers or self.numbers[-1] < wanted:
                line = (await reader.readline()).decode()
                if not line:
                    return
                if line.startswith("id: "):
                    id_ = line[4:].strip()
                elif line.startswith("data: ") and id_:
                    self.numbers.append(json.loads(line[6:])["number"])
                    self.last_id, id_ = id_, ""
        finally:
            writer.close()


def start_site(port, kit):
    """Start uvicorn, and return its process when it listens."""
    command = [sys.executable, "-m", "uvicorn", "tests.chaos.mailbox.site:application", "--port", str(port)]
    command += ["--log-level", "warning", "--no-access-log", "--lifespan", "off", "--timeout-graceful-shutdown", "1"]
    environment = {**os.environ, "STREAMS_REDIS_KIT": json.dumps(kit)}
    site = subprocess.Popen([*command, "--backlog", "4096"], cwd=ROOT, env=environment)
    for _ in range(1500):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return site
        time.sleep(0.02)
    raise AssertionError("the site does not listen")


def memory(pid):
    """Return the bytes of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def connections_of(server, site):
    """Return how many connections to the server a process has."""
    with contextlib.suppress(redis.RedisError), server.client() as client:
        ports = {int(entry["addr"].rpartition(":")[2]) for entry in client.client_list()}
        return len(ports & ports_of(site.pid))
    return 0


def ports_of(pid):
    """Return the local ports of the sockets of a process."""
    inodes = set()
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            target = os.readlink(fd)  # noqa: PTH115
            if target.startswith("socket:["):
                inodes.add(target[8:-1])
    rows = [line.split() for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
    return {int(row[1].rpartition(":")[2], 16) for row in rows if row[9] in inodes}


async def _follow(clients, wanted, sending):
    tasks = [asyncio.create_task(client.run(wanted)) for client in clients]
    try:
        await asyncio.wait_for(asyncio.gather(sending, *tasks), 600)
    except TimeoutError:
        pass
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def run(server, kit, count, messages, *, restarts=True):
    """Return the outcome. ``server`` writes each change to its disk before it answers."""
    began, port = time.monotonic(), free_port()
    chats = max(1, min(CHATS, count // 4))
    names = ["all", *(f"c{number}" for number in range(chats))]
    clients = [Client(port, "all" if n % 2 else f"c{n // 2 % chats}", f"m{n}") for n in range(count)]
    for name in names:
        Chat(name).create([client.member for client in clients if client.chat == name])
    site = start_site(port, kit)
    most, empty = 0, 0
    state = {"site": site}

    async def send():
        nonlocal most, empty
        before = await asyncio.to_thread(memory, state["site"].pid)
        while sum(client.connects > 0 for client in clients) < len(clients):  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        await asyncio.sleep(0.5)
        empty = (memory(state["site"].pid) - before) / len(clients)
        for number in range(messages):
            if restarts and number == messages // 3:
                state["site"].send_signal(signal.SIGKILL)
                await asyncio.to_thread(state["site"].wait)
                state["site"] = await asyncio.to_thread(start_site, port, kit)
            if restarts and number == 2 * messages // 3:
                await asyncio.to_thread(server.restart)
            await asyncio.to_thread(send_all, number)
            if number % 10 == 0:
                most = max(most, await asyncio.to_thread(connections_of, server, state["site"]))

    def send_all(number):
        for name in names:
            while True:
                with contextlib.suppress(RedisKitError):
                    Chat(name).send(None, f"message {number}", client_id=str(number))
                    break
                time.sleep(0.02)

    try:
        asyncio.run(_follow(clients, messages, send()))
    finally:
        state["site"].kill()
        state["site"].wait()
    expected = list(range(1, messages + 1))
    wrong = [f"{each.member} got {each.numbers[:120]}" for each in clients if each.numbers != expected]
    return Outcome(wrong, most, empty, time.monotonic() - began)


def main(arguments):
    """Run it, and return the exit code."""
    from django.test import override_settings

    from tests.chaos.bloom.kill_loop import durable

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # an orderly exit ends the site too
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("clients", type=int)
    parser.add_argument("messages", type=int)
    options, folder = parser.parse_args(arguments), Path(tempfile.mkdtemp())
    server = durable(folder)
    kit = {"CONNECTIONS": {"default": server.connection}}
    try:
        with override_settings(REDIS_KIT=kit):
            outcome = run(server, kit, options.clients, options.messages)
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{options.clients:,} clients, {options.messages} messages each, in {outcome.seconds:.0f} s")
    print(
        f"connections to Redis: {outcome.connections} at most; memory: {outcome.bytes_per_client:,.0f} bytes a client"
    )
    print(f"clients that missed or doubled a message: {len(outcome.wrong)} {outcome.wrong[:3]}")
    return 1 if outcome.wrong or outcome.connections >= MOST_CONNECTIONS else 0


if __name__ == "__main__":
    import django
    from django.conf import settings

    settings.configure(INSTALLED_APPS=["redis_kit"], USE_TZ=True, SECRET_KEY="only-for-tests-and-as-long-as-a-real-one")
    django.setup()
    sys.exit(main(sys.argv[1:]))
