"""Reading the result of a call and waiting for it, as flows."""

from time import monotonic
from typing import Any

from redis_kit.core.flow import Flow
from redis_kit.core.primitive import Primitive
from redis_kit.core.steps import Pop
from redis_kit.core.values.numbers import seconds
from redis_kit.queues.keys import of_one
from redis_kit.queues.store import calls

AGAIN = 5.0  # seconds until a lost wake-up is noticed
WAIT = (0, 86_400.0)  # seconds
WAITING = (b"READY", b"RUNNING")


def find(queue: Primitive, id: str) -> Flow[list[Any]]:
    """Read what is stored about a call."""
    reply: list[Any] = yield calls.get_result(queue.key(""), id)
    return reply


def wait(queue: Primitive, id: str, timeout: float) -> Flow[list[Any]]:
    """Read it when the call has ended, or when the time is up."""
    deadline = monotonic() + seconds("timeout", timeout, WAIT)
    while True:
        reply: list[Any] = yield calls.get_result(queue.key(""), id, waits=True)
        left = deadline - monotonic()
        if reply[0] not in WAITING or left <= 0:
            return reply
        yield Pop(of_one(queue.key(""), "finished", id), timeout=min(left, AGAIN))
