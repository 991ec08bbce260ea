"""Idle connections of one server, kept for the next call: a client's own pool costs more than the call's other work.

Where all are in use, callers stand in line, and a connection goes from hand to hand: first come, first served. A
connection that is not given back, whatever interrupted its user, counts no longer once nothing refers to it.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from weakref import WeakSet

from redis_kit.core.client import wire
from redis_kit.core.client.connection_factory import Source
from redis_kit.core.client.waiters import TaskWaiter, ThreadWaiter
from redis_kit.core.errors import PoolExhausted

SPARE = 4  # connections that those who wait on the server leave to others, such as renewals of leases
AT_ONCE = 8  # connections that are set up at one time, or as many as stand: a cold start is no flood


@dataclass(frozen=True)
class Limits:
    """What bounds a pool: how many connections, how long a caller waits for one, and how long the server may take."""

    most: int
    wait: float
    connect: float
    read: float


class _Shared:
    """What both pools share: the idle connections, those who wait for one, and who gets the next one."""

    def __init__(self, source: Source, limits: Limits, where: str, refuse: Callable[[], None]) -> None:
        self.closed = False
        self._source, self._limits, self._where, self._refuse = source, limits, where, refuse
        self._spare = min(SPARE, limits.most // 2)
        self._idle: deque[Any] = deque()
        self._waiting: deque[Any] = deque()
        self._waiting_to_block: deque[Any] = deque()
        self._made: WeakSet[Any] = WeakSet()
        self._new: WeakSet[Any] = WeakSet()  # of these, those that are not connected yet
        self._lock = threading.RLock()  # a signal's handler may need a connection, too

    def give(self, connection: Any) -> None:
        """Take a connection back that is connected, with nothing left to read."""
        if self.closed:
            self.drop(connection)
            return
        self._idle.append(connection)
        if self._waiting or self._waiting_to_block:
            self._serve()

    def drop(self, connection: Any) -> None:
        """Close a connection; a new one may take its place."""
        self._disconnect(connection)
        with self._lock:
            self._made.discard(connection)
            self._new.discard(connection)
            self._serve()

    def close(self) -> None:
        """Close the idle connections now, and the others when they come back."""
        self.closed = True
        while self._idle:
            self._disconnect(self._idle.pop())

    def end(self) -> None:
        """Close all connections, those in use too: nobody runs who could give them back."""
        self.close()
        for connection in list(self._made):
            self._disconnect(connection)

    def _disconnect(self, connection: Any) -> None:
        raise NotImplementedError

    def _connected(self, connection: Any) -> None:
        with self._lock:
            self._new.discard(connection)
            self._serve()

    def _stand_in_line(self, waiter: Any, *, to_block: bool) -> None:
        with self._lock:
            (self._waiting_to_block if to_block else self._waiting).append(waiter)
            self._serve()

    def _leave(self, waiter: Any) -> None:
        with self._lock:
            for line in (self._waiting, self._waiting_to_block):
                with suppress(ValueError):
                    line.remove(waiter)

    def _serve(self) -> None:
        """Give those who wait what there is."""
        with self._lock:
            while (line := self._next_line()) and (found := self._free()) is not None:
                while line and not (taken := line.popleft().hand(found)):
                    pass
                if not taken:
                    self._keep(found)

    def _next_line(self) -> deque[Any] | None:
        if self._waiting:
            return self._waiting
        in_use = len(self._made) - len(self._idle)
        return self._waiting_to_block if in_use < self._limits.most - self._spare else None

    def _free(self) -> Any:
        """Return an idle connection, a new one, None where there may be no other, or the error of making one."""
        with suppress(IndexError):
            return self._idle.pop()
        made, new = len(self._made), len(self._new)
        if made >= self._limits.most or new >= max(AT_ONCE, made - new):
            return None
        try:
            connection = self._source.make()
        except Exception as error:
            return error
        self._made.add(connection)
        self._new.add(connection)
        return connection

    def _keep(self, found: Any) -> None:
        if found in self._new or self.closed:
            self._made.discard(found)
            self._new.discard(found)
        elif not isinstance(found, Exception):
            self._idle.append(found)

    def _put_back(self, found: Any) -> None:
        with self._lock:
            if found is not None:
                self._keep(found)
            self._serve()

    def _checked(self, found: Any, *, to_block: bool) -> Any:
        """Return what came of waiting. Raises where it was an error or nothing, or the server is known to be away."""
        try:
            self._refuse()
            if isinstance(found, Exception):
                raise found
            if found is None:
                raise self._exhausted(to_block=to_block)
        except BaseException:
            self._put_back(found)
            raise
        return found

    def _exhausted(self, *, to_block: bool) -> PoolExhausted:
        most, waiting = self._limits.most, len(self._waiting) + len(self._waiting_to_block) + 1
        but = f", but for {self._spare} that no waiting call may take," if to_block else ""
        calls = "call waits" if waiting == 1 else "calls wait"
        return PoolExhausted(
            f"All {most} connections of this process to {self._where}{but} are in use, and {waiting} {calls} for one. "
            f"None was free within {self._limits.wait:g} s. REDIS_KIT['MAX_CONNECTIONS'] limits them: see 'How many "
            "connections' in docs/howto/connections."
        )


class Pool(_Shared):
    """The connections of all threads; the one used last is used next."""

    def take(self, *, to_block: bool = False) -> Any:
        """Return a connection, connected and with nothing left to read; stand in line for one where all are in use.

        One that is taken ``to_block``, to wait on the server, leaves some for those who don't. Raises PoolExhausted.
        """
        while True:
            try:
                connection = self._wait(to_block=to_block) if to_block or self._waiting else self._idle.pop()
            except IndexError:
                connection = self._wait(to_block=to_block)
            try:
                if wire.is_usable(connection):
                    return connection
                if not wire.is_open(connection):
                    connection.connect()
                    self._connected(connection)
                    return connection
            except BaseException:
                self.drop(connection)
                raise
            self.drop(connection)

    def close(self) -> None:
        """Close the idle connections now, and the others when they come back."""
        super().close()
        for sentinel in self._source.sentinels:
            sentinel.close()

    def _disconnect(self, connection: Any) -> None:
        connection.disconnect()

    def _wait(self, *, to_block: bool) -> Any:
        waiter = ThreadWaiter()
        try:
            self._stand_in_line(waiter, to_block=to_block)
            waiter.wait(self._limits.wait)
        except BaseException:
            self._leave(waiter)
            self._put_back(waiter.taken())
            raise
        self._leave(waiter)
        return self._checked(waiter.taken(), to_block=to_block)


class AsyncPool(_Shared):
    """The same for the tasks of one event loop."""

    async def take(self, *, to_block: bool = False) -> Any:
        """See Pool.take()."""
        while True:
            try:
                connection = (await self._wait(to_block=to_block)) if to_block or self._waiting else self._idle.pop()
            except IndexError:
                connection = await self._wait(to_block=to_block)
            try:
                if wire.is_usable_async(connection):
                    return connection
                if not wire.is_open_async(connection):
                    await self._connect(connection)
                    self._connected(connection)
                    return connection
            except BaseException:
                self.drop(connection)
                raise
            self.drop(connection)

    def _disconnect(self, connection: Any) -> None:
        wire.abort_async(connection)

    async def _connect(self, connection: Any) -> None:
        task = asyncio.current_task()
        before = task.cancelling() if task else 0
        try:
            with wire.limited_steps(connection, connect=self._limits.connect, read=self._limits.read):
                await connection.connect()
        finally:
            for sentinel in self._source.sentinels:  # asked once in a while, and by one of many loops
                await sentinel.connection_pool.disconnect(inuse_connections=False)
        if task and task.cancelling() > before:
            raise asyncio.CancelledError  # that the client library swallowed

    async def _wait(self, *, to_block: bool) -> Any:
        waiter = TaskWaiter()
        try:
            self._stand_in_line(waiter, to_block=to_block)
            await waiter.wait(self._limits.wait)
        except BaseException:
            self._leave(waiter)
            self._put_back(waiter.taken())
            raise
        self._leave(waiter)
        return self._checked(waiter.taken(), to_block=to_block)
