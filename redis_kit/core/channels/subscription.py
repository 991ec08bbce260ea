"""The publications on a channel that a waiting caller gets, and orders to look for itself."""

import asyncio
import threading
from collections import deque
from contextlib import suppress
from typing import Any

MOST = 256  # publications that wait for a caller; with one more it is told to look for itself


class Subscription:
    """The publications on a channel for one caller: a thread, or a task of the loop that made it."""

    def __init__(self, channel: str) -> None:
        self.channel = channel
        self.error: Exception | None = None
        self.loop: Any = None
        with suppress(RuntimeError):
            self.loop = asyncio.get_running_loop()
        self._publications: deque[bytes] = deque()
        self._must_look = False
        self._event: Any = threading.Event() if self.loop is None else asyncio.Event()

    def put(self, publication: bytes | None) -> None:
        """Take a publication, or the order to look. To be followed by wake()."""
        if publication is None or len(self._publications) >= MOST:
            self._must_look = True
        else:
            self._publications.append(publication)

    def wake(self) -> None:
        """Wake the caller. To be called in its loop, if it has one."""
        self._event.set()

    def take(self) -> list[bytes] | None:
        """Return the publications since the last call; None if the caller has to look. Raises what ended it."""
        self._event.clear()  # before the look at the rest: what comes after it sets the event again
        if self.error:
            raise self.error
        must_look, self._must_look = self._must_look, False
        publications = [self._publications.popleft() for _ in range(len(self._publications))]
        return None if must_look else publications

    def wait(self, seconds: float) -> None:
        """Return when there is something to take, or after some seconds."""
        if self.loop:  # sync code in a thread whose loop runs, and can't wake it
            self._event = threading.Event()
            self.loop = None
            self._must_look = True
            return
        self._event.wait(seconds)

    async def await_(self, seconds: float) -> None:
        """See wait()."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._event.wait()


class Listen:
    """A step: wait for a publication for at most some seconds, and return what take() does."""

    __slots__ = ("seconds", "subscription")

    def __init__(self, subscription: Subscription, seconds: float) -> None:
        self.subscription, self.seconds = subscription, seconds

    def run(self, client: Any) -> list[bytes] | None:
        """Wait in this thread."""
        self.subscription.wait(self.seconds)
        return self.subscription.take()

    async def arun(self, client: Any) -> list[bytes] | None:
        """Wait in this task."""
        await self.subscription.await_(self.seconds)
        return self.subscription.take()
