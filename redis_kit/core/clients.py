"""The kit's clients: a command goes out once, its reply or the kit's error comes back.

Before a command leaves this process a failure is plain; after that it is ``indeterminate``, and the connection is
closed so that a late reply can't be taken for the next one.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any
from weakref import WeakKeyDictionary

from redis.exceptions import NoScriptError, ResponseError

from redis_kit.core import failures, replies
from redis_kit.core.breaker import Breaker
from redis_kit.core.errors import RedisFailure, RedisUnavailable
from redis_kit.core.pools import AsyncPool, Exhausted, Pool
from redis_kit.core.protocol import packed
from redis_kit.core.sources import Source
from redis_kit.core.steps import Argument, Command

LONG = 10**8  # seconds: the time of a read is limited by what is around it


@dataclass(frozen=True)
class Server:
    """One server as a client sees it: how to connect, how long to wait, and what guards against its outage."""

    where: str
    source: Source
    most: int
    read: float
    breaker: Breaker | None


class _Guard:
    """What both clients do with a failure: translate it and tell the breaker."""

    def __init__(self, server: Server) -> None:
        self.where, self.breaker, self._read = server.where, server.breaker, server.read

    def translated(self, error: Exception, *, sent: bool) -> Exception:
        """Return the kit's error for one of the client library."""
        found = failures.translate(error, sent=sent, where=self.where)
        if self.breaker and isinstance(found, RedisUnavailable) and not isinstance(error, Exhausted):
            self.breaker.failed(found)
        return found


class Client(_Guard):
    """A client of one server or Sentinel service, for all threads of a process."""

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self._pool = Pool(server.source, server.most)

    def call(self, *command: Argument) -> Any:
        """Send one command and return its reply."""
        connection = self._take()
        try:
            connection._sock.sendall(packed(command))
            reply = replies.read(connection)
        except BaseException as error:
            raise self._failed(connection, error) from error
        self._pool.give(connection)
        if self.breaker and self.breaker.failures:
            self.breaker.succeeded()
        return reply

    def block(self, timeout: float, *command: Argument) -> Any:
        """Send a command that may wait on the server for ``timeout`` seconds, and return its reply."""
        connection = self._take(to_wait=True)
        try:
            connection.send_packed_command([packed(command)])
            connection._sock.settimeout(timeout + self._read)
            reply = connection.read_response(disconnect_on_error=True)
            connection._sock.settimeout(self._read)
        except BaseException as error:
            raise self._failed(connection, error) from error
        self._pool.give(connection)
        return reply

    def watch(
        self, timeout: float, pause: float, look: Callable[[], float | None], waiting: Command, next_one: Command
    ) -> Any:
        """Send a command that may wait on the server, and behind it one that runs the moment that one is over.

        After each pause without a reply, ``look`` is called: it returns the seconds until the next look, or None to
        end the wait. Returns the second command's reply, an error as it is; None where ``look`` ended the wait.
        """
        connection = self._take(to_wait=True)
        try:
            connection.send_packed_command([packed(waiting) + packed(next_one)])
            end = monotonic() + timeout + self._read
            while not connection.can_read(timeout=max(min(pause, end - monotonic()), 0)):
                if monotonic() >= end:
                    raise TimeoutError("no answer in time")
                if (again := look()) is None:
                    connection.disconnect()
                    self._pool.give(connection)
                    return None
                pause = again
            connection.read_response(disconnect_on_error=True)
            try:
                reply = connection.read_response(disconnect_on_error=True)
            except NoScriptError as error:
                reply = error
        except RedisFailure:
            connection.disconnect()
            self._pool.give(connection)
            raise
        except BaseException as error:
            connection.disconnect()  # the other reply is still to come
            raise self._failed(connection, error) from error
        self._pool.give(connection)
        return reply

    def batch(self, commands: Sequence[Command]) -> list[Any]:
        """Send several commands at once and return their replies, errors among them."""
        connection, replies = self._take(), []
        try:
            connection.send_packed_command([b"".join(map(packed, commands))])
            for _ in commands:
                try:
                    replies.append(connection.read_response(disconnect_on_error=False))
                except ResponseError as error:
                    replies.append(self.translated(error, sent=True))
        except BaseException as error:
            raise self._failed(connection, error) from error
        self._pool.give(connection)
        return replies

    def close(self) -> None:
        """Close its connections."""
        self._pool.close()

    def _take(self, *, to_wait: bool = False) -> Any:
        if self.breaker and self.breaker.is_open:
            self.breaker.refuse()
        try:
            return self._pool.take(to_wait=to_wait)
        except Exception as error:
            raise self.translated(error, sent=False) from error

    def _failed(self, connection: Any, error: BaseException) -> BaseException:
        if not isinstance(error, ResponseError) or failures.must_drop(error):
            connection.disconnect()
        self._pool.give(connection)
        return self.translated(error, sent=True) if isinstance(error, Exception) else error


class AsyncClient(_Guard):
    """The same for all tasks of one event loop."""

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self._pool = AsyncPool(server.source, server.most)
        self._opened = False

    async def call(self, *command: Argument) -> Any:
        """See Client.call()."""
        connection = await self._take()
        try:
            await self._send(connection, packed(command))
            reply = await connection.read_response(disconnect_on_error=True)
        except BaseException as error:
            raise await self._failed(connection, error) from error
        self._pool.give(connection)
        if self.breaker and self.breaker.failures:
            self.breaker.succeeded()
        return reply

    async def block(self, timeout: float, *command: Argument) -> Any:
        """See Client.block()."""
        connection = await self._take(to_wait=True)
        try:
            await self._send(connection, packed(command))
            async with asyncio.timeout(timeout + self._read):
                reply = await connection.read_response(timeout=LONG, disconnect_on_error=True)
        except BaseException as error:
            raise await self._failed(connection, error) from error
        self._pool.give(connection)
        return reply

    async def watch(
        self,
        timeout: float,
        pause: float,
        look: Callable[[], Awaitable[float | None]],
        waiting: Command,
        next_one: Command,
    ) -> Any:
        """See Client.watch()."""
        connection, reading = await self._take(to_wait=True), None
        try:
            await self._send(connection, packed(waiting) + packed(next_one))
            reading = asyncio.ensure_future(connection.read_response(timeout=LONG, disconnect_on_error=True))
            async with asyncio.timeout(timeout + self._read):
                while not (await asyncio.wait({reading}, timeout=pause))[0]:
                    if (again := await look()) is None:
                        await _ended(connection, reading)
                        self._pool.give(connection)
                        return None
                    pause = again
            reading.result()
            try:
                reply = await connection.read_response(disconnect_on_error=True)
            except NoScriptError as error:
                reply = error
        except BaseException as error:
            if reading:
                await _ended(connection, reading)
            if isinstance(error, RedisFailure):
                self._pool.give(connection)
                raise
            raise await self._failed(connection, error) from error
        self._pool.give(connection)
        return reply

    async def batch(self, commands: Sequence[Command]) -> list[Any]:
        """See Client.batch()."""
        connection, replies = await self._take(), []
        try:
            await self._send(connection, b"".join(map(packed, commands)))
            for _ in commands:
                try:
                    replies.append(await connection.read_response(disconnect_on_error=False))
                except ResponseError as error:
                    replies.append(self.translated(error, sent=True))
        except BaseException as error:
            raise await self._failed(connection, error) from error
        self._pool.give(connection)
        return replies

    async def _send(self, connection: Any, command: bytes) -> None:
        # On Python 3.11 the client library's own way, wait_for(), swallows a cancellation that comes at that moment.
        connection._writer.write(command)
        if connection._writer.transport.get_write_buffer_size():
            async with asyncio.timeout(self._read):
                await connection._writer.drain()

    async def _take(self, *, to_wait: bool = False) -> Any:
        if self.breaker and self.breaker.is_open:
            self.breaker.refuse()
        if not self._opened:
            self._opened = True
            await _close_with_loop(self._pool)
        try:
            return await self._pool.take(to_wait=to_wait)
        except Exception as error:
            raise self.translated(error, sent=False) from error

    async def _failed(self, connection: Any, error: BaseException) -> BaseException:
        if not isinstance(error, ResponseError) or failures.must_drop(error):
            await connection.disconnect(nowait=True)
        self._pool.give(connection)
        return self.translated(error, sent=True) if isinstance(error, Exception) else error


async def _ended(connection: Any, reading: "asyncio.Future[Any]") -> None:
    reading.cancel()
    with contextlib.suppress(BaseException):
        await reading
    await connection.disconnect(nowait=True)


_held: WeakKeyDictionary[asyncio.AbstractEventLoop, list[AsyncGenerator[None, None]]] = WeakKeyDictionary()


async def _close_with_loop(pool: AsyncPool) -> None:
    # A loop that ends closes its asynchronous generators: the one moment at which its sockets can still be closed.
    generator = _closing(pool)
    await anext(generator)
    _held.setdefault(asyncio.get_running_loop(), []).append(generator)


async def _closing(pool: AsyncPool) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        await pool.close()


def probe(make: Callable[[], Any]) -> None:
    """Ask a server whether it serves, over a connection of its own; raises when it does not."""
    connection = make()
    try:
        connection.connect()
        connection.send_command("PING")
        connection.read_response(disconnect_on_error=True)
    finally:
        connection.disconnect()
