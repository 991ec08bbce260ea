"""The tasks that are interrupted, and those that are not. Each makes calls to the kit and looks at the replies."""

import asyncio
import logging
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from secrets import token_hex
from threading import get_ident
from types import FrameType
from typing import Any

from redis_kit.core import connections
from redis_kit.locks import Lock
from redis_kit.queues import Cancelled, Queue, TaskTimeout, progress, task
from redis_kit.queues.inspection import queue_counts
from redis_kit.queues.worker.process import WorkerProcess
from redis_kit.queues.worker.run import timeouts
from redis_kit.throttling import Throttle

NAME = "default"
LEASE = 0.5  # seconds
WAITS = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032)  # seconds
ERRORS: dict[str, type[BaseException]] = {"timeout": TaskTimeout, "cancel": Cancelled}
launcher: list[WorkerProcess] = []
steps: Counter[str] = Counter()  # places in each call at which it can be interrupted
done: set[int] = set()
log = logging.getLogger("tests.interrupts")


def _client() -> Any:
    return connections.client()


def _echo(name: str) -> None:
    nonce = token_hex(8).encode()
    reply = _client().call("ECHO", nonce)
    assert reply == nonce, f"another one's reply: {reply!r}"


def _block(name: str) -> None:
    assert _client().block(0.005, "BLPOP", f"nobody:{name}", "0.005") is None


def _lock(name: str) -> None:
    with Lock(f"lock{get_ident()}", timeout=LEASE):
        pass


def _wait(name: str) -> None:
    first, second = (Lock(f"wait{get_ident()}", timeout=LEASE) for _ in range(2))
    if first.acquire():
        try:
            assert not second.acquire(blocking_timeout=0.01)
        finally:
            first.release()


def _hit(name: str) -> None:
    assert Throttle("all", "1000000/s").hit("everybody")


def _put(name: str) -> None:
    Queue("aside").put(name)


def _batch(name: str) -> None:
    assert set(queue_counts(["aside", NAME])) == {"aside", NAME}


def _progress(name: str) -> None:
    progress(1, 2, name)


def _log(name: str) -> None:
    log.error("A line of %s.", name)


CALLS: dict[str, Callable[[str], None]] = {
    "echo": _echo,
    "block": _block,
    "lock": _lock,
    "wait": _wait,
    "hit": _hit,
    "put": _put,
    "batch": _batch,
    "progress": _progress,
    "log": _log,
}


class Stepper:
    """Raises an error at one of the places where Python may: where a function begins, and where one of C returned."""

    def __init__(self, at: int, error: type[BaseException]) -> None:
        self.at, self.error, self.count = at, error, 0

    def __call__(self, frame: FrameType, event: str, arg: Any) -> None:
        """Take in what happens in a thread: a function for sys.setprofile()."""
        if event in ("call", "c_return") and not timeouts.is_guarded(frame):
            self.count += 1
            if self.count == self.at:
                launcher[0]._context.deadlines._limits.pop(get_ident(), None)  # it interrupts an attempt once
                raise self.error


def place(call: str, *, fresh: bool) -> str:
    """Return the name of a call, on a new connection or on one that is there."""
    return f"{call} anew" if fresh else call


@task(max_attempts=1)
def stepped(call: str, fresh: bool, at: int, error: str) -> None:
    """Make a call, and be interrupted at a place of it."""
    stepper = Stepper(at, ERRORS[error])
    work = CALLS[call]
    if fresh:
        client = _client()
        client._pool.drop(client._take())
    sys.setprofile(stepper)
    try:
        work("stepped")
    finally:
        sys.setprofile(None)
        if not at:
            steps[place(call, fresh=fresh)] = stepper.count


@task(max_attempts=1)
def innocent(call: str, number: int) -> None:
    """Make a call that nobody interrupts."""
    for name in ("echo", call, "echo"):
        CALLS[name]("innocent")
    done.add(number)


def _busy(seconds: float = 5.0) -> None:
    end, randomness = time.monotonic() + seconds, random.Random(get_ident())
    while time.monotonic() < end:
        CALLS[randomness.choice(list(CALLS))]("busy")


async def _busy_async() -> None:
    while True:
        nonce = token_hex(8).encode()
        assert await connections.aclient().call("ECHO", nonce) == nonce
        await Queue("aside").acounts()
        async with Lock(f"async{token_hex(2)}", timeout=LEASE):
            await asyncio.sleep(0)


def _timed(seconds: float) -> list[Any]:
    def timed() -> None:
        _busy()

    async def timed_async() -> None:
        await _busy_async()

    made = []
    for number, function in enumerate((timed, timed_async)):
        function.__qualname__ = function.__name__ = f"timed_{'async_' * number}{seconds * 1000:.0f}"
        function.__module__ = __name__
        made.append(task(max_attempts=1, timeout=seconds)(function))
    return made


TIMED = [made for seconds in WAITS for made in _timed(seconds)]


@task(max_attempts=1, timeout=None)
def busy() -> None:
    """Make calls until somebody ends that."""
    _busy()


@task(max_attempts=1)
async def innocent_async(number: int) -> None:
    """Make calls that nobody interrupts, on the loop of those that are."""
    for _ in range(3):
        nonce = token_hex(8).encode()
        assert await connections.aclient().call("ECHO", nonce) == nonce
    done.add(number)
