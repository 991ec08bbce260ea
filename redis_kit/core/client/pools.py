"""Connections of one server, kept for the next call: redis-py's own pool costs more than the rest of a call.

If all are in use, callers stand in line, and the first in line gets the next connection. A connection that its user
never returned, because something interrupted it, is not counted any more once nothing refers to it.
"""

import asyncio
import math
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty
from typing import Any
from weakref import ref

from redis_kit.core.client import wire
from redis_kit.core.client.breaker import Breaker
from redis_kit.core.client.connection_factory import ConnectionFactory
from redis_kit.core.client.wire import Deadline
from redis_kit.core.errors import PoolExhausted
from redis_kit.core.values.event_queue import EventQueue

MOMENT = 0.01  # seconds for another look: a thread may have slept through the moment at which it was served
SPARE = 4  # connections that blocking commands leave to others, such as renewals of leases
AT_ONCE = 8  # connections that are opened at a time, or as many as are open: a cold start must not flood the server


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


@dataclass(frozen=True)
class Server:
    """One server as a client sees it: its connections, and the circuit breaker.

    A pool has at most ``most`` connections. The others are seconds: to wait for one, to open one, and for a reply.
    """

    where: str
    factory: ConnectionFactory
    most: int
    wait: float
    connect: float
    read: float
    breaker: Breaker | None
    in_cluster: bool = False  # its client is part of one that follows redirections


class _Living:
    """Connections, as long as something else refers to them.

    Not a WeakSet: it forgets by a function in Python. If that were interrupted, a connection would count for ever.
    """

    def __init__(self) -> None:
        self._refs: set[ref[Any]] = set()

    def __len__(self) -> int:
        return len(self._refs)

    def __contains__(self, connection: Any) -> bool:
        return ref(connection) in self._refs

    def __iter__(self) -> Iterator[Any]:
        return (connection for living in list(self._refs) if (connection := living()) is not None)

    def add(self, connection: Any) -> None:
        """Count a connection."""
        self._refs.add(ref(connection, self._refs.discard))

    def discard(self, connection: Any) -> None:
        """Count a connection no more."""
        self._refs.discard(ref(connection))


class _Shared:
    """The base of both pools: the idle connections, the line of callers that wait, and its next one."""

    def __init__(self, server: Server, refuse: Callable[[], None]) -> None:
        self.closed = False
        self.server, self.factory, self._refuse = server, server.factory, refuse
        self._spare = min(SPARE, server.most // 2)
        self._idle: deque[Any] = deque()
        self._waiting: deque[Any] = deque()
        self._waiting_to_block: deque[Any] = deque()
        self._made = _Living()
        self._new = _Living()  # of these, those that are not connected yet
        self._lock = threading.RLock()  # a signal's handler may need a connection, too

    def give(self, connection: Any) -> None:
        """Return a connection to the pool. It must be open, with nothing left to read."""
        if self.closed:
            self.drop(connection)
            return
        self._idle.append(connection)
        if self._waiting or self._waiting_to_block:
            self._serve()

    def drop(self, connection: Any) -> None:
        """Close a connection; a new one may take its place."""
        try:
            self._disconnect(connection)
        finally:  # an interruption's traceback refers to it, maybe for long
            with self._lock:
                self._made.discard(connection)
                self._new.discard(connection)
                self._serve()

    def close(self) -> None:
        """Close the idle connections now, and the others when they are returned."""
        self.closed = True
        while self._idle:
            self._disconnect(self._idle.pop())

    def end(self) -> None:
        """Close all connections, also those in use: nothing runs any more that could return them."""
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

    def _look_again(self, waiter: Any, *, to_block: bool) -> None:
        """Serve a caller whose time is over, if it can be: an interrupted call may have told nobody of its place."""
        with self._lock:
            if not waiter.served():
                self._leave(waiter)
                (self._waiting_to_block if to_block else self._waiting).appendleft(waiter)
                self._serve()

    def _leave(self, waiter: Any) -> None:
        with self._lock:
            for line in (self._waiting, self._waiting_to_block):
                with suppress(ValueError):
                    line.remove(waiter)

    def _serve(self) -> None:
        """Hand free connections to the callers in line."""
        with self._lock:
            while (line := self._next_line()) and (item := self._free()) is not None:
                while line and not (taken := line.popleft().hand(item)):
                    pass
                if not taken:
                    self._keep(item)

    def _next_line(self) -> deque[Any] | None:
        if self._waiting:
            return self._waiting
        in_use = len(self._made) - len(self._idle)
        return self._waiting_to_block if in_use < self.server.most - self._spare else None

    def _free(self) -> Any:
        """Return an idle connection or a new one, the error of making it, or None if the pool is at its limit."""
        with suppress(IndexError):
            return self._idle.pop()
        made, new = len(self._made), len(self._new)
        if made >= self.server.most or new >= max(AT_ONCE, made - new):
            return None
        try:
            connection = self.factory.make()
        except Exception as error:
            return error
        self._made.add(connection)
        self._new.add(connection)
        return connection

    def _keep(self, item: Any) -> None:
        if isinstance(item, Exception):
            return
        if item in self._new or self.closed:
            self._made.discard(item)
            self._new.discard(item)
        else:
            self._idle.append(item)

    def _put_back(self, item: Any) -> None:
        with self._lock:
            if item is not None:
                self._keep(item)
            self._serve()

    def _checked(self, item: Any, seconds: float, *, to_block: bool) -> Any:
        """Return the connection that a caller waited for. Raises an error that it got instead, or RedisUnavailable."""
        try:
            self._refuse()
            if isinstance(item, Exception):
                raise item
            if item is None:
                raise self._exhausted(seconds, to_block=to_block)
        except BaseException:
            self._put_back(item)
            raise
        return item

    def _exhausted(self, seconds: float, *, to_block: bool) -> PoolExhausted:
        most, waiting = self.server.most, len(self._waiting) + len(self._waiting_to_block) + 1
        but = f", but for {self._spare} that no waiting call may take," if to_block else ""
        calls = "call waits" if waiting == 1 else "calls wait"
        return PoolExhausted(
            f"All {most} connections of this process to {self.server.where}{but} are in use, and {waiting} {calls} for "
            f"one. None was free within {seconds:.3g} s. REDIS_KIT['MAX_CONNECTIONS'] limits them: see 'How many "
            "connections' in docs/howto/connections."
        )


class Pool(_Shared):
    """The connections of all threads. The connection that was used last is used next."""

    def take(self, seconds: float = math.inf, *, to_block: bool = False) -> Any:
        """Return a connection, open and with nothing left to read. If all are in use, stand in line for some seconds.

        With ``to_block``, for a command that waits on the server, some are left for others. Raises PoolExhausted.
        """
        while True:
            try:
                connection = self._wait(seconds, to_block=to_block) if to_block or self._waiting else self._idle.pop()
            except IndexError:
                connection = self._wait(seconds, to_block=to_block)
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
        """Close the idle connections now, and the others when they are returned."""
        super().close()
        for sentinel in self.factory.sentinels:
            sentinel.close()

    def _disconnect(self, connection: Any) -> None:
        connection.disconnect()

    def _wait(self, seconds: float, *, to_block: bool) -> Any:
        waiter = ThreadWaiter()
        try:
            self._stand_in_line(waiter, to_block=to_block)
            if not waiter.wait(min(seconds, self.server.wait)):
                self._look_again(waiter, to_block=to_block)
            self._leave(waiter)
        except BaseException:
            self._leave(waiter)
            self._put_back(waiter.taken())
            raise
        return self._checked(waiter.taken(), seconds, to_block=to_block)


class AsyncPool(_Shared):
    """The connections of the tasks of one event loop. See Pool."""

    async def take(self, seconds: float = math.inf, *, to_block: bool = False) -> Any:
        """See Pool.take()."""
        while True:
            try:
                must_wait = to_block or self._waiting
                connection = (await self._wait(seconds, to_block=to_block)) if must_wait else self._idle.pop()
            except IndexError:
                connection = await self._wait(seconds, to_block=to_block)
            try:
                is_usable = wire.is_usable_async(connection)
                if is_usable or (is_usable is None and await wire.is_silent(connection)):
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
            await wire.open_async(connection, connect=self.server.connect, read=self.server.read)
        finally:
            for sentinel in self.factory.sentinels:  # asked once in a while, and by one of many loops
                await sentinel.connection_pool.disconnect(inuse_connections=False)
        if task and task.cancelling() > before:
            raise asyncio.CancelledError  # which redis-py swallowed

    async def _wait(self, seconds: float, *, to_block: bool) -> Any:
        waiter = TaskWaiter()
        try:
            self._stand_in_line(waiter, to_block=to_block)
            await waiter.wait(min(seconds, self.server.wait))
            self._leave(waiter)
        except BaseException:
            self._leave(waiter)
            self._put_back(waiter.taken())
            raise
        return self._checked(waiter.taken(), seconds, to_block=to_block)
