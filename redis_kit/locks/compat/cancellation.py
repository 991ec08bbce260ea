"""Cancellations of calls of redis-py, which loses some before Python 3.12."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

Reply = TypeVar("Reply")


async def cancellable(call: Awaitable[Reply]) -> Reply:
    """Return the reply of a call. Raises CancelledError if the task was cancelled during the call.

    redis-py writes within asyncio.wait_for(). Before Python 3.12 that ignores a cancellation in the moment in which the
    command was written, and a waiter would go on.
    """
    task = asyncio.current_task()
    before = task.cancelling() if task else 0
    reply = await call
    if task and task.cancelling() > before:
        raise asyncio.CancelledError
    return reply
