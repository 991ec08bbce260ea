"""Fixtures for locks: other processes, and waiters of which a test knows that they wait."""

import subprocess
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from redis_kit.locks.acquiring import wait
from redis_kit.locks.renewal import pending_releases, scheduler
from tests.fixtures.fork_server import PythonProcess, start_python
from tests.fixtures.servers import wait_for
from tests.locks.support.leases import tickets

PRELUDE = """
import os, sys, time
from django.conf import settings
connections = {"default": {"URL": sys.argv[2]}}
patient = {"CONNECT_TIMEOUT": 2.0, "READ_TIMEOUT": 2.0}
settings.configure(USE_TZ=True, REDIS_KIT={"PREFIX": sys.argv[1], "CONNECTIONS": connections, **patient})
from redis_kit.locks import *
"""


@pytest.fixture(autouse=True)
def nothing_left_to_renew() -> Iterator[None]:
    """Forget what a test leaves behind to renew or release: it would be counted in the next one."""
    yield
    pending_releases._queues.clear()
    for loop in scheduler._loops.values():
        for item in list(loop._entries):
            loop.remove(item)


@pytest.fixture
def program(kit: Any) -> Iterator[Callable[..., PythonProcess]]:
    """A function that starts a Python program with the same kit in a process of its own."""
    started: list[PythonProcess] = []

    def start(code: str, *arguments: object) -> PythonProcess:
        command = ["-c", PRELUDE + code, kit.prefix, kit.url, *arguments]
        started.append(start_python(command, stdout=subprocess.PIPE))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def only_woken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiters ask by themselves every 30 seconds, not every second: a lost wake-up outlasts the wait of a test."""
    monkeypatch.setattr(wait, "INTERVAL", 30.0)
    monkeypatch.setattr(wait, "WAITER_TTL", 60_000)


@pytest.fixture
def waiting(blocked: Callable[[], set[str]]) -> Callable[[Callable[[], object]], threading.Thread]:
    """A function that runs another one in a thread, and returns when the server has it blocked."""

    def start(function: Callable[[], object]) -> threading.Thread:
        before = blocked()
        thread = threading.Thread(target=function)
        thread.start()
        wait_for(lambda: blocked() - before)
        return thread

    return start


@pytest.fixture
def queued(kit):
    """A function that runs another one in a thread, and returns when it has a ticket."""

    def start(function):
        before = len(tickets(kit))
        thread = threading.Thread(target=function)
        thread.start()
        wait_for(lambda: len(tickets(kit)) == before + 1)
        return thread

    return start
