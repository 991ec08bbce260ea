"""The clients of an event loop. The loop holds them, so they are gone when it is, however it ended.

Their connections are closed when the loop closes its asynchronous generators, as asyncio.run() and async_to_sync() make
it do; those of a loop that was closed without, when the next loop of this process asks for a client.
"""

import asyncio
import threading
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any
from weakref import WeakSet

NAME = "_redis_kit"  # the loop's attribute; a mapping from loops would keep them, for a connection refers to its loop

_lock = threading.RLock()
_loops: WeakSet[asyncio.AbstractEventLoop] = WeakSet()


class LoopClients:
    """The clients of one loop. To be made while that loop runs."""

    def __init__(self) -> None:
        self.clients: dict[Any, Any] = {}
        # A loop that ends closes its asynchronous generators: the one moment at which its sockets can still be closed.
        self._generator = self._until_the_end()
        with suppress(StopIteration):
            self._generator.__anext__().send(None)

    def close(self) -> None:
        """Drop the clients; connections in use are closed when they are returned."""
        clients = list(self.clients.values())
        self.clients.clear()
        for client in clients:
            client.close()

    def end(self) -> None:
        """Close every connection: the loop does not run any more."""
        for client in self.clients.values():
            client.end()
        self.clients.clear()

    async def _until_the_end(self) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            self.end()


def clients() -> dict[Any, Any]:
    """Return the clients of the running loop, by alias and profile."""
    loop = asyncio.get_running_loop()
    held: LoopClients | None = getattr(loop, NAME, None)
    if held is None:
        end_closed()
        held = LoopClients()
        setattr(loop, NAME, held)
        with _lock:
            _loops.add(loop)
    return held.clients


def end_closed() -> None:
    """Close the connections of loops that were closed without closing their asynchronous generators."""
    with _lock:
        closed = [loop for loop in _loops if loop.is_closed()]
        _loops.difference_update(closed)
    for loop in closed:
        getattr(loop, NAME).end()


def close() -> None:
    """Drop the clients of all loops. Each closes its connections itself."""
    end_closed()
    for loop in list(_loops):
        with suppress(RuntimeError):  # it was closed just now
            loop.call_soon_threadsafe(getattr(loop, NAME).close)


def forget() -> None:
    """Forget the loops of a parent process."""
    global _lock
    _lock = threading.RLock()
    _loops.clear()
