"""Server-Sent Events: each client gets each message once, while the site and the Redis server restart.

``python -m tests.chaos mailbox.streams 2000 100`` opens 2,000 streams of one uvicorn process, half of them of one chat
and the others of 50 more, and sends 100 messages to each chat. In between, both processes are restarted. No message may
be missed, doubled or out of order, and the process must have fewer than 20 connections to Redis.
"""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import redis

from redis_kit.core.errors import RedisKitError
from redis_kit.mailbox import Chat
from tests.chaos.engine import program
from tests.chaos.engine.program import Outcome
from tests.chaos.engine.stage import stage
from tests.fixtures.process import free_port

ROOT = Path(__file__).parents[3]
CHATS = 50
MOST_CONNECTIONS = 20


@dataclass(frozen=True)
class Plan(program.Plan):
    """How many clients get how many messages."""

    clients: int
    messages: int


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
            if not status:  # the site was killed
                return
            assert b" 200 " in status, f"after {status!r} an EventSource does not connect again"
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


def run(plan):
    """Send messages while the site and the server restart."""
    with stage("always") as place:
        return follow(place.server, place.kit, plan.clients, plan.messages)


def follow(server, kit, count, messages):
    """Return the outcome. ``server`` writes each change to its disk before it answers."""
    port = free_port()
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
            if number == messages // 3:
                state["site"].send_signal(signal.SIGKILL)
                await asyncio.to_thread(state["site"].wait)
                state["site"] = await asyncio.to_thread(start_site, port, kit)
            if number == 2 * messages // 3:
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
    many = [f"the process had {most} connections to Redis"] if most >= MOST_CONNECTIONS else []
    figures = f"{count:,} clients, {messages} messages each; connections: {most} at most; {empty:,.0f} bytes a client"
    return Outcome(figures, {"lost or doubled": wrong, "connections": many})
