"""The jobs. Each tells the history when it begins and how it ends; ``number`` is what it was sent as."""

import asyncio
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from redis_kit.queues import task
from tests.chaos.queues.support.history import note


class Declared(Exception):
    """A failure that was asked for."""


@contextmanager
def noted(number: int, attempt: int = 0) -> Iterator[None]:
    """Write down the beginning and the end of the block."""
    note(number, "begin", attempt)
    try:
        yield
    except BaseException:
        note(number, "raise", attempt)
        raise
    note(number, "end", attempt)


@task(store_result=False)
def nothing(number: int) -> None:
    """Do nothing."""
    with noted(number):
        pass


@task
def kept(number: int) -> int:
    """Do nothing, and have a result."""
    with noted(number):
        return number


@task(store_result=False)
def short(number: int, seconds: float) -> None:
    """Take a moment."""
    with noted(number):
        time.sleep(seconds)


@task
async def short_async(number: int, seconds: float) -> int:
    """Take a moment, as a coroutine."""
    with noted(number):
        await asyncio.sleep(seconds)
    return number


@task
def steady(number: int, seconds: float) -> int:
    """Take some time, and have a result."""
    with noted(number):
        time.sleep(seconds)
    return number


@task(takes_context=True)
def flaky(context: Any, number: int) -> int:
    """Fail in the first attempt."""
    with noted(number, context.attempt):
        if context.attempt == 1:
            raise Declared("the first attempt")
    return number


@task(takes_context=True, backoff=0.1)
def unsteady(context: Any, number: int) -> int:
    """Fail in the first attempt, and follow it soon."""
    with noted(number, context.attempt):
        if context.attempt == 1:
            raise Declared("the first attempt")
    return number


@task(takes_context=True, max_attempts=2)
def doomed(context: Any, number: int) -> None:
    """Fail always."""
    with noted(number, context.attempt):
        raise Declared("each attempt")


@task(store_result=False)
def deliver(number: int, port: int) -> None:
    """Need a service."""
    with noted(number), socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        if not connection.recv(3) == b"220":
            raise Declared("the service does not answer")


@task(store_result=False)
def member(number: int, seconds: float) -> int:
    """Be a step of a workflow."""
    with noted(number):
        time.sleep(seconds)
    return number


@task(max_attempts=1)
def gathered(number: int, count: int, results: list[int], failures: list[Any]) -> None:
    """Be the callback of a group, and fail unless all results are there."""
    with noted(number):
        if results != list(range(count)) or failures:
            raise Declared(f"{len(results)} results, {failures[:3]}")
