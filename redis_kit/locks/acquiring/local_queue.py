"""Queues within a process: of the callers that want one name, only the first one sends requests to the server.

So a thousand tasks that want one lock need one connection.
"""

import asyncio
import math
import os
import threading
from collections.abc import Callable
from functools import cached_property
from secrets import token_hex
from time import monotonic
from typing import Any
from weakref import WeakKeyDictionary


class LocalQueue:
    """The callers of this process, or of one event loop, that want one name, in the order in which they came."""

    def __init__(self) -> None:
        self.turns: dict[str, Any] = {}  # token -> the event that is set when its turn comes; None for the first
        self.reported_at = -math.inf  # when the server was told that all of them wait

    @cached_property
    def id(self) -> str:
        """Return an ID that differs from those of other processes."""
        return token_hex(8)

    def tokens(self) -> list[str]:
        """Return the tokens of the callers in the queue."""
        with _guard:
            return list(self.turns)


LocalQueues = dict[str, LocalQueue]


class Turn:
    """A step: wait for the turn to request a key, until a moment of the monotonic clock; True if it has come.

    With ``check`` it raises RedisUnavailable rather than wait while the circuit breaker is open.
    """

    __slots__ = ("_check", "_event", "_queues", "key", "queue", "token", "until")

    queue: LocalQueue

    def __init__(self, key: str, token: str, *, until: float, check: bool = False) -> None:
        self.key, self.token, self.until, self._check = key, token, until, check
        self._event: Any = None
        self._queues: LocalQueues | None = None

    def run(self, client: Any) -> bool:
        """Wait in this thread. No round trip."""
        if self._queues is None:
            self._join(_of_threads, threading.Event)
        if self._event is None:
            return True
        if self._check:
            client.check()
        return bool(self._event.wait(self._remaining()))

    async def arun(self, client: Any) -> bool:
        """See run()."""
        if self._queues is None:
            self._join(_of_tasks.setdefault(asyncio.get_running_loop(), {}), asyncio.Event)
        if self._event is None or self._event.is_set():
            return True
        if self._check:
            client.check()
        try:
            async with asyncio.timeout(self._remaining()):
                return bool(await self._event.wait())
        except TimeoutError:
            return False

    @property
    def has_waited(self) -> bool:
        """Tell whether others came before."""
        return self._event is not None

    def end(self) -> None:
        """Give the turn to the next caller."""
        if self._queues is None:
            return
        with _guard:
            queue = self._queues.get(self.key, self.queue)
            queue.turns.pop(self.token, None)
            if event := next(iter(queue.turns.values()), None):
                event.set()
            elif not queue.turns:
                self._queues.pop(self.key, None)
        self._queues = None

    __del__ = end  # after an interruption

    def _join(self, queues: LocalQueues, make: Callable[[], Any]) -> None:
        with _guard:
            self.queue = queues.get(self.key) or LocalQueue()
            self._queues = queues
            queues[self.key] = self.queue
            self._event = make() if self.queue.turns else None
            self.queue.turns[self.token] = self._event

    def _remaining(self) -> float | None:
        return None if self.until == math.inf else max(self.until - monotonic(), 0)


_of_threads: LocalQueues = {}
_of_tasks: WeakKeyDictionary[asyncio.AbstractEventLoop, LocalQueues] = WeakKeyDictionary()
_guard = threading.RLock()


def _forget() -> None:
    global _guard
    _guard = threading.RLock()
    _of_threads.clear()


os.register_at_fork(after_in_child=_forget)
