"""Places in the line for a connection. A waiter sleeps until it is handed something, or its time is over."""

import asyncio
from contextlib import suppress
from queue import Empty
from typing import Any

from redis_kit.core.client.deadlines import Deadline
from redis_kit.core.values.event_queue import EventQueue

MOMENT = 0.01  # seconds for another look: a thread may have slept through the moment at which it was served


class ThreadWaiter:
    """A thread's place in the line."""

    __slots__ = ("_got",)

    def __init__(self) -> None:
        self._got: EventQueue[Any] = EventQueue()

    def hand(self, item: Any) -> bool:
        """Hand over a connection or an error. Returns False if nothing waits here any more."""
        self._got.put(item)
        return True

    def wait(self, seconds: float) -> bool:
        """Return True when it was handed something, or False after some seconds."""
        for timeout in (seconds, MOMENT):
            with suppress(Empty):
                self._got.put(self._got.get(timeout=timeout))
                return True
        return False

    def served(self) -> bool:
        """Tell whether it was handed something."""
        return not self._got.empty()

    def taken(self) -> Any:
        """Return the connection or error that was handed over, or None."""
        return None if self._got.empty() else self._got.get()


class TaskWaiter:
    """A task's place in the line."""

    __slots__ = ("_got",)

    def __init__(self) -> None:
        self._got: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def hand(self, item: Any) -> bool:
        """See ThreadWaiter.hand()."""
        if self._got.done():
            return False
        self._got.set_result(item)
        return True

    async def wait(self, seconds: float) -> None:
        """Return when it was handed something, or after some seconds."""
        with suppress(TimeoutError):
            async with Deadline(seconds):
                await self._got

    def taken(self) -> Any:
        """See ThreadWaiter.taken()."""
        return self._got.result() if self._got.done() and not self._got.cancelled() else None
