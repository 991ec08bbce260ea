"""Locks measured beside each other: by processes, by one blocked waiter, and by many tasks."""

import asyncio
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any, NamedTuple

import redis
import redis.asyncio

from benchmarks.support.locks.kinds import BARE, LEASE, LOCKS, OURS, PATIENCE
from benchmarks.support.locks.processes import LockProcesses, Outcome, Visit, Work, outcome
from redis_kit.core import conf
from redis_kit.core.settings import KitSettings
from redis_kit.locks import Lock

ROUNDS = 5
SLICE = 0.5  # seconds
COUNTED = 0.3  # seconds of a separate slice with MONITOR, which slows the server
INSIDE = 0.001
BLOCKED = 5.0
TASKS = 1000
LONGEST = 3.0  # seconds for all tasks
SET_UP = {"CLIENT", "HELLO", "SELECT", "PING", "SCRIPT"}
END = "the end of listening"

Notes = list[list[Visit]]


class Figures(NamedTuple):
    """The results of one lock."""

    slices: list[Outcome]
    sent: float  # commands that clients sent, per acquisition
    run: float  # those and the commands inside scripts


class Passed(NamedTuple):
    """The results of many tasks that acquire one lock."""

    connections: int
    tasks: int  # that had it
    seconds: float


def address() -> str:
    """Return the server's address."""
    return str(conf.section(KitSettings).CONNECTIONS["default"]["URL"])


def side_by_side(processes: LockProcesses, client: redis.Redis, *, rest: float) -> dict[str, Figures]:
    """Measure a slice of each lock in turn, round after round."""
    slices: dict[str, list[Outcome]] = {kind: [] for kind in LOCKS}
    for _ in range(ROUNDS):
        for kind, outcomes in slices.items():
            outcomes.append(outcome(*one_slice(processes, client, kind, SLICE, rest)))
    return {kind: Figures(outcomes, *commands(processes, client, kind, rest)) for kind, outcomes in slices.items()}


def one_slice(
    processes: LockProcesses, client: redis.Redis, kind: str, length: float, rest: float
) -> tuple[Notes, Work]:
    """Return the notes of all processes, and their work."""
    name = f"bench-{secrets.token_hex(4)}"
    LOCKS[kind].prepare(name, client)
    begin = time.monotonic() + 0.05
    work = Work(kind, name, begin, begin + length, INSIDE, rest)
    processes.start(work)
    return processes.results(), work


def commands(processes: LockProcesses, client: redis.Redis, kind: str, rest: float) -> tuple[float, float]:
    """Return the commands per acquisition: those that clients sent, and all that ran."""
    with listening(client) as ran:
        notes, _ = one_slice(processes, client, kind, COUNTED, rest)
    acquisitions = sum(map(len, notes))
    return sum(entry["client_type"] != "lua" for entry in ran) / acquisitions, len(ran) / acquisitions


def blocked_commands(processes: LockProcesses, client: redis.Redis) -> dict[str, float]:
    """Return the commands a second of one blocked waiter of each lock; all wait at once."""
    kinds = list(LOCKS)
    names = {kind: f"blocked-{secrets.token_hex(4)}" for kind in kinds}
    holders = [LOCKS[kind](names[kind], address()) for kind in kinds if kind != BARE]
    for holder in holders:
        holder.take()
    for line, kind in zip(processes.lines, kinds, strict=False):
        line.send(Work(kind, names[kind], 0.0, time.monotonic() + 0.2, 0.0, 1.0))
    time.sleep(0.5)
    with listening(client) as ran:
        time.sleep(BLOCKED)
    for holder in holders:
        holder.give()
    client.rpush(names[BARE], "token")
    processes.results(len(kinds))
    sent = [entry["command"] for entry in ran if entry["client_type"] != "lua"]
    return {kind: sum(names[kind] in command for command in sent) / BLOCKED for kind in kinds}


@contextmanager
def listening(client: redis.Redis) -> Iterator[list[dict[str, Any]]]:
    """Collect the commands that run during the block, without those of new connections."""
    ran: list[dict[str, Any]] = []
    with client.monitor() as monitor:

        def listen() -> None:
            for entry in monitor.listen():
                if END in entry["command"]:
                    return
                if entry["command"].split(" ", 1)[0].upper() not in SET_UP:
                    ran.append(entry)

        thread = Thread(target=listen, daemon=True)
        thread.start()
        yield ran
        client.echo(END)
        thread.join(5)


async def many_tasks(kind: str, client: redis.Redis) -> Passed:
    """Let a thousand tasks of this process wait for one lock, then release it."""
    async with redis.asyncio.Redis.from_url(address(), socket_timeout=None, max_connections=2 * TASKS) as async_client:
        acquire, hold, give = _of_tasks(kind, f"tasks-{secrets.token_hex(4)}", client, async_client)
        hold()
        before = peak = len(client.client_list())
        tasks = [asyncio.create_task(acquire()) for _ in range(TASKS)]
        await asyncio.sleep(0.7)
        began = time.monotonic()
        give()
        waiting = set(tasks)
        while waiting and time.monotonic() - began < LONGEST:
            peak = max(peak, len(client.client_list()))
            _, waiting = await asyncio.wait(waiting, timeout=0.05)
        seconds = time.monotonic() - began
        for task in waiting:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    done = [task for task in tasks if not task.cancelled() and task.exception() is None]
    return Passed(peak - before, len(done), seconds)


def _of_tasks(kind: str, name: str, client: redis.Redis, async_client: Any) -> tuple[Callable[[], Any], ...]:
    if kind == BARE:

        async def pop_and_push() -> None:
            assert await async_client.blpop([name], timeout=PATIENCE)
            await async_client.rpush(name, "token")

        return pop_and_push, lambda: None, lambda: client.rpush(name, "token")

    held = Lock(name, timeout=LEASE) if kind == OURS else client.lock(name, timeout=LEASE)

    async def with_lock() -> None:
        lock = Lock(name, timeout=LEASE) if kind == OURS else async_client.lock(name, timeout=LEASE)
        async with lock:
            pass

    return with_lock, held.acquire, held.release
