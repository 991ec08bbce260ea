"""Idle connections of one server, kept for the next call: a client's own pool costs more than the call's other work."""

import asyncio
import select
import threading
from collections import deque
from ssl import SSLSocket
from typing import Any

from redis.exceptions import ConnectionError as ClientConnectionError

from redis_kit.core.sources import Source

SPARE = 4  # connections that those who wait on the server leave to others, such as renewals of leases


class Exhausted(ClientConnectionError):
    """All connections of the pool are in use. The server itself may be well."""


class Pool:
    """At most ``most`` connections at once; the one used last is used next."""

    def __init__(self, source: Source, most: int) -> None:
        self._source, self._most = source, most
        self._spare = min(SPARE, most // 2)
        self._idle: deque[Any] = deque()
        self._count, self._counting = 0, threading.Lock()
        self.closed = False

    def take(self, *, to_wait: bool = False) -> Any:
        """Return a connection, connected and with nothing left to read. Raises Exhausted at once when all are in use.

        One that is taken ``to_wait`` on the server leaves some for those who don't.
        """
        connection = self._next(to_wait)
        try:
            if connection._sock is None:
                connection.connect()
            elif _is_spoilt(connection):
                connection.disconnect()
                connection.connect()
        except BaseException:
            self.give(connection)
            raise
        return connection

    def give(self, connection: Any) -> None:
        """Take a connection back."""
        if self.closed:
            connection.disconnect()
        else:
            self._idle.append(connection)

    def close(self) -> None:
        """Close the idle connections now, and the others when they come back."""
        self.closed = True
        while self._idle:
            self._idle.pop().disconnect()
        for sentinel in self._source.sentinels:
            sentinel.close()

    def _next(self, to_wait: bool) -> Any:
        if to_wait and self._count - len(self._idle) >= self._most - self._spare:
            raise _exhausted(self._most, f", but for {self._spare} that no caller may block")
        try:
            return self._idle.pop()
        except IndexError:
            pass
        with self._counting:
            if self._count >= self._most:
                raise _exhausted(self._most)
            self._count += 1
        return self._source.make()


class AsyncPool(Pool):
    """The same for the connections of one event loop."""

    async def take(self, *, to_wait: bool = False) -> Any:
        """See Pool.take()."""
        connection = self._next(to_wait)
        try:
            await _connect(connection)
            if _is_spoilt_async(connection):
                await connection.disconnect(nowait=True)
                await _connect(connection)
        except BaseException:
            self._idle.append(connection)
            raise
        return connection

    async def close(self) -> None:  # type: ignore[override]
        """See Pool.close(). Must run in the loop of the connections."""
        self.closed = True
        while self._idle:
            await self._idle.pop().disconnect(nowait=True)
        for sentinel in self._source.sentinels:
            await sentinel.aclose()


async def _connect(connection: Any) -> None:
    task = asyncio.current_task()
    before = task.cancelling() if task else 0
    await connection.connect()
    if task and task.cancelling() > before:
        raise asyncio.CancelledError  # that wait_for() of Python 3.11 swallowed inside the client library


def _is_spoilt(connection: Any) -> bool:
    """Say whether the server closed an idle connection, or an answer came after its caller had given up."""
    if isinstance(connection._sock, SSLSocket):
        try:
            return bool(connection.can_read())
        except (ClientConnectionError, OSError):
            return True
    return _has_news(connection._sock)


def _is_spoilt_async(connection: Any) -> bool:
    # The stream knows only what its loop has read so far, and the loop may not have run since: so the kernel is asked.
    if connection._writer.is_closing() or connection._reader.at_eof() or connection._reader._buffer:
        return True
    return _has_news(connection._writer.get_extra_info("socket"))


def _has_news(sock: Any) -> bool:
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))


def _exhausted(most: int, more: str = "") -> Exhausted:
    return Exhausted(f"all {most} connections of this process are in use{more}; raise REDIS_KIT['MAX_CONNECTIONS']")
