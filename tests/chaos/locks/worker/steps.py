"""How a worker's steps are carried out: methods in a thread, or their ``a`` twins in an event loop."""

import asyncio
import time
from collections.abc import Callable, Generator
from typing import Any, TypeVar

from asgiref.sync import sync_to_async

from redis_kit.core import connections

Answer = TypeVar("Answer")
Step = tuple[Callable[..., Any], dict[str, Any]]
Steps = Generator[Step, Any, Answer]


def run(steps: Steps[Answer]) -> Answer:
    """Carry steps out in this thread."""
    try:
        method, given = steps.send(None)
        while True:
            try:
                reply = method(**given)
            except Exception as error:
                method, given = steps.throw(error)
            else:
                method, given = steps.send(reply)
    except StopIteration as stop:
        answer: Answer = stop.value
        return answer


async def arun(steps: Steps[Answer]) -> Answer:
    """See run(). The cancellation that tells the holder of a lost lease is raised in the steps, too."""
    try:
        method, given = steps.send(None)
        while True:
            try:
                reply = await _twin(method)(**given)
            except (Exception, asyncio.CancelledError) as error:
                method, given = steps.throw(error)
            else:
                method, given = steps.send(reply)
    except StopIteration as stop:
        answer: Answer = stop.value
        return answer


def _twin(method: Any) -> Callable[..., Any]:
    twin = getattr(method.__self__, f"a{method.__name__}", None)
    return twin or sync_to_async(method)


class World:
    """What a worker needs besides the lock."""

    def rest(self, *, seconds: float) -> None:
        """Do nothing for some seconds."""
        time.sleep(seconds)

    async def arest(self, *, seconds: float) -> None:
        """See rest()."""
        await asyncio.sleep(seconds)

    def clock(self) -> int:
        """Return the server's clock in µs."""
        return _micros(connections.client().call("TIME"))

    async def aclock(self) -> int:
        """See clock()."""
        return _micros(await connections.aclient().call("TIME"))


def _micros(reply: Any) -> int:
    return int(reply[0]) * 1_000_000 + int(reply[1])
