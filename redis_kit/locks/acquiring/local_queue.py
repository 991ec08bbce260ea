"""Turns within a process: those who want one name stand in a line here, and only the first of them asks the server.

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


class Line:
    """Those of this process, or of one event loop, who want one name, in the order in which they came."""

    def __init__(self) -> None:
        self.places: dict[str, Any] = {}  # token -> the event that is set when its turn comes; None for the first

    @cached_property
    def id(self) -> str:
        """Return what tells it from the lines of other processes."""
        return token_hex(8)

    def tokens(self) -> list[str]:
        """Return who stands in line."""
        with _guard:
            return list(self.places)


Lines = dict[str, Line]


class Turn:
    """A step: wait for the turn to ask for a key, until a moment of the monotonic clock; True when it has come."""

    __slots__ = ("_event", "_lines", "key", "line", "token", "until")

    line: Line

    def __init__(self, key: str, token: str, *, until: float) -> None:
        self.key, self.token, self.until = key, token, until
        self._event: Any = None
        self._lines: Lines | None = None

    def run(self, client: Any) -> bool:
        """Wait in this thread. No round trip."""
        if self._lines is None:
            self._join(_of_threads, threading.Event)
        return self._event is None or self._event.wait(self._left())

    async def arun(self, client: Any) -> bool:
        """See run()."""
        if self._lines is None:
            self._join(_of_tasks.setdefault(asyncio.get_running_loop(), {}), asyncio.Event)
        if self._event is None or self._event.is_set():
            return True
        try:
            async with asyncio.timeout(self._left()):
                return bool(await self._event.wait())
        except TimeoutError:
            return False

    def end(self) -> None:
        """Let the next one ask."""
        if self._lines is None:
            return
        with _guard:
            line = self._lines.get(self.key, self.line)
            line.places.pop(self.token, None)
            if event := next(iter(line.places.values()), None):
                event.set()
            elif not line.places:
                self._lines.pop(self.key, None)
        self._lines = None

    __del__ = end  # what an interruption left undone

    def _join(self, lines: Lines, make: Callable[[], Any]) -> None:
        with _guard:
            self.line = lines.get(self.key) or Line()
            self._lines = lines
            lines[self.key] = self.line
            self._event = make() if self.line.places else None
            self.line.places[self.token] = self._event

    def _left(self) -> float | None:
        return None if self.until == math.inf else max(self.until - monotonic(), 0)


_of_threads: Lines = {}
_of_tasks: WeakKeyDictionary[asyncio.AbstractEventLoop, Lines] = WeakKeyDictionary()
_guard = threading.RLock()


def _forget() -> None:
    global _guard
    _guard = threading.RLock()
    _of_threads.clear()


os.register_at_fork(after_in_child=_forget)
