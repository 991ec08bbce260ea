"""Waits for something that is published, for flows of all components."""

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import Any
from weakref import WeakKeyDictionary

from redis_kit.core.channels.listener import renew, subscribed
from redis_kit.core.channels.subscription import Listen
from redis_kit.core.client.backoff import full_jitter
from redis_kit.core.errors import PoolExhausted, RedisUnavailable
from redis_kit.core.flow import Flow, Step
from redis_kit.core.steps import Sleep
from redis_kit.core.values.numbers import seconds

AT_ONCE = 8  # steps of one event loop at a time
TIMEOUT = (0.0, 3600.0)
LONGEST = 30.0  # seconds without a publication after which a caller looks all the same
PASSING = (RedisUnavailable, PoolExhausted)  # failures that may pass
_turns: "WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore]" = WeakKeyDictionary()


def until_found(
    using: str,
    channel: str,
    look: Callable[[], Flow[Any]],
    timeout: float,
    follow: Callable[[Any, list[bytes]], Any] = lambda result, publications: None,
) -> Flow[Any]:
    """Look, and again after each publication on a channel, until there are ``messages`` or the time is over.

    The result of a look may have ``next_look``: seconds until another one makes sense without a publication.
    ``follow`` may return the next result from the last one and what was published since, and so save a look.
    ``timeout`` is 0 to 3,600. A failure that may pass is raised at the first look, or at the end.
    """
    deadline, failures = monotonic() + seconds("timeout", timeout, TIMEOUT), 0
    result = yield from look()
    if result.messages or not timeout:
        return result
    publications: list[bytes] | None = None
    with subscribed(using, channel) as subscription:
        while not result.messages and (left := deadline - monotonic()) > 0:
            try:
                if not failures:
                    renew(using, subscription)
                    publications = yield Listen(subscription, min(left, getattr(result, "next_look", LONGEST)))
                result = (publications and follow(result, publications)) or (yield from in_turn(look()))
                failures = 0
            except PASSING:
                publications = None
                pause = full_jitter(failures, first=0.1, longest=1.0)
                failures += 1
                if monotonic() + pause > deadline:
                    raise
                yield Sleep(pause)
    return result


def in_turn(steps: Flow[Any]) -> Flow[Any]:
    """Carry out a flow beside a few others of its event loop, so that thousands of tasks use few connections."""
    try:
        step = steps.send(None)
        while True:
            try:
                reply = yield _InTurn(step)
            except BaseException as error:
                step = steps.throw(error)
            else:
                step = steps.send(reply)
    except StopIteration as stop:
        return stop.value


class _InTurn:
    """A step that waits for its turn in an event loop. Threads are few."""

    __slots__ = ("step",)

    def __init__(self, step: Step) -> None:
        self.step = step

    def run(self, client: Any) -> Any:
        return self.step.run(client)

    async def arun(self, client: Any) -> Any:
        async with _turns.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(AT_ONCE)):
            return await self.step.arun(client)
