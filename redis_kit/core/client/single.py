"""The kit's clients: a command goes out once, its reply or the kit's error comes back.

Before a command leaves this process a failure is plain; after that it is ``indeterminate``, and the connection is
closed so that a late reply can't be taken for the next one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any, NoReturn

from redis.exceptions import NoScriptError, ResponseError

from redis_kit.core.client import error_map, wire
from redis_kit.core.client.breaker import Breaker
from redis_kit.core.client.connection_factory import Source
from redis_kit.core.client.deadlines import Deadline
from redis_kit.core.client.pools import AsyncPool, Limits, Pool
from redis_kit.core.client.protocol import packed
from redis_kit.core.errors import RedisUnavailable
from redis_kit.core.steps import Argument, Command


@dataclass(frozen=True)
class Server:
    """One server as a client sees it: how to connect, how long to wait, and what guards against its outage."""

    where: str
    source: Source
    limits: Limits
    read: float
    breaker: Breaker | None


class _Guard:
    """What both clients do with a failure: translate it and tell the breaker."""

    _pool: Pool | AsyncPool

    def __init__(self, server: Server) -> None:
        self.where, self.breaker, self._read = server.where, server.breaker, server.read

    def check(self) -> None:
        """Raise where the server is known to be away."""
        if self.breaker and self.breaker.is_open:
            self.breaker.refuse()

    def translated(self, error: Exception, *, sent: bool) -> Exception:
        """Return the kit's error for one of the client library."""
        found = error_map.translate(error, sent=sent, where=self.where)
        if self.breaker and isinstance(found, RedisUnavailable) and found is not error:
            self.breaker.failed(found)
        return found

    def _fail(self, connection: Any, error: BaseException) -> NoReturn:
        """Raise what a caller gets for an error that came while it had a connection."""
        if error_map.must_drop(error):
            self._pool.drop(connection)
        else:
            self._pool.give(connection)
        self._raise(error)

    def _raise(self, error: BaseException, *, sent: bool = True) -> NoReturn:
        """Raise the kit's error for an exception, and what ends a task as it is: it tells nothing about the server."""
        found = self.translated(error, sent=sent) if isinstance(error, Exception) else error
        if found is error:
            raise error  # from itself, and who follows the causes would walk in a circle
        raise found from error


class Client(_Guard):
    """A client of one server or Sentinel service, for all threads of a process."""

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self._pool = Pool(server.source, server.limits, server.where, self.check)

    def call(self, *command: Argument) -> Any:
        """Send one command and return its reply."""
        connection = self._take()
        try:
            reply = wire.exchange(connection, packed(command))
        except BaseException as error:
            self._fail(connection, error)
        self._pool.give(connection)
        if self.breaker and self.breaker.failures:
            self.breaker.succeeded()
        return reply

    def block(self, timeout: float, *command: Argument) -> Any:
        """Send a command that may wait on the server for ``timeout`` seconds, and return its reply."""
        connection = self._take(to_block=True)
        try:
            connection.send_packed_command([packed(command)])
            wire.set_timeout(connection, timeout + self._read)
            reply = wire.read(connection)
            wire.set_timeout(connection, self._read)
        except BaseException as error:
            self._fail(connection, error)
        self._pool.give(connection)
        return reply

    def watch(
        self, timeout: float, pause: float, look: Callable[[], float | None], waiting: Command, next_one: Command
    ) -> Any:
        """Send a command that may wait on the server, and behind it one that runs the moment that one is over.

        After each pause without a reply, ``look`` is called: it returns the seconds until the next look, or None to
        end the wait. Returns the second command's reply, an error as it is; None where ``look`` ended the wait.
        """
        connection = self._take(to_block=True)
        try:
            connection.send_packed_command([packed(waiting) + packed(next_one)])
            end = monotonic() + timeout + self._read
            while not connection.can_read(timeout=max(min(pause, end - monotonic()), 0)):
                if monotonic() >= end:
                    raise TimeoutError("no answer in time")
                if (again := look()) is None:
                    self._pool.drop(connection)
                    return None
                pause = again
            wire.read(connection)
            try:
                reply = wire.read(connection)
            except NoScriptError as error:
                reply = error
        except BaseException as error:
            self._pool.drop(connection)  # the other reply is still to come
            self._raise(error)
        self._pool.give(connection)
        return reply

    def batch(self, commands: Sequence[Command]) -> list[Any]:
        """Send several commands at once and return their replies, errors among them."""
        connection, found = self._take(), []
        try:
            connection.send_packed_command([b"".join(map(packed, commands))])
            for _ in commands:
                try:
                    found.append(wire.read(connection))
                except ResponseError as error:
                    if error_map.closes(error):
                        raise
                    found.append(self.translated(error, sent=True))
        except BaseException as error:
            self._fail(connection, error)
        self._pool.give(connection)
        return found

    def close(self) -> None:
        """Close its connections."""
        self._pool.close()

    def _take(self, *, to_block: bool = False) -> Any:
        if self.breaker and self.breaker.is_open:
            self.breaker.refuse()
        try:
            return self._pool.take(to_block=to_block)
        except Exception as error:
            self._raise(error, sent=False)


class AsyncClient(_Guard):
    """The same for all tasks of one event loop."""

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self._pool = AsyncPool(server.source, server.limits, server.where, self.check)

    async def call(self, *command: Argument) -> Any:
        """See Client.call()."""
        connection = await self._take()
        try:
            async with Deadline(self._read):
                await wire.asend(connection, packed(command))
                reply = await connection.read_response(disconnect_on_error=False)
        except BaseException as error:
            self._fail(connection, error)
        self._pool.give(connection)
        if self.breaker and self.breaker.failures:
            self.breaker.succeeded()
        return reply

    async def block(self, timeout: float, *command: Argument) -> Any:
        """See Client.block()."""
        connection = await self._take(to_block=True)
        try:
            async with Deadline(timeout + self._read):
                await wire.asend(connection, packed(command))
                reply = await connection.read_response(disconnect_on_error=False)
        except BaseException as error:
            self._fail(connection, error)
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
        connection, reading = await self._take(to_block=True), None
        try:
            async with Deadline(timeout + self._read):
                await wire.asend(connection, packed(waiting) + packed(next_one))
                reading = asyncio.ensure_future(connection.read_response(disconnect_on_error=False))
                while not (await asyncio.wait({reading}, timeout=pause))[0]:
                    if (again := await look()) is None:
                        self._end(connection, reading)
                        return None
                    pause = again
                reading.result()
            try:
                async with Deadline(self._read):
                    reply = await connection.read_response(disconnect_on_error=False)
            except NoScriptError as error:
                reply = error
        except BaseException as error:
            self._end(connection, reading)
            self._raise(error)
        self._pool.give(connection)
        return reply

    async def batch(self, commands: Sequence[Command]) -> list[Any]:
        """See Client.batch()."""
        connection, found = await self._take(), []
        try:
            async with Deadline(self._read):
                await wire.asend(connection, b"".join(map(packed, commands)))
            for _ in commands:
                try:
                    async with Deadline(self._read):
                        found.append(await connection.read_response(disconnect_on_error=False))
                except ResponseError as error:
                    if error_map.closes(error):
                        raise
                    found.append(self.translated(error, sent=True))
        except BaseException as error:
            self._fail(connection, error)
        self._pool.give(connection)
        return found

    def close(self) -> None:
        """Close its connections, those in use when they are given back. To be called in its loop."""
        self._pool.close()

    def end(self) -> None:
        """Close all its connections; the loop has ended, or ends."""
        self._pool.end()

    async def _take(self, *, to_block: bool = False) -> Any:
        if self.breaker and self.breaker.is_open:
            self.breaker.refuse()
        try:
            return await self._pool.take(to_block=to_block)
        except Exception as error:
            self._raise(error, sent=False)

    def _end(self, connection: Any, reading: "asyncio.Future[Any] | None") -> None:
        self._pool.drop(connection)
        if reading:
            reading.add_done_callback(lambda one: one.cancelled() or one.exception())  # or asyncio logs it
            reading.cancel()


def probe(make: Callable[[], Any]) -> None:
    """Ask a server whether it serves, over a connection of its own; raises when it does not."""
    connection = make()
    try:
        connection.connect()
        connection.send_command("PING")
        connection.read_response(disconnect_on_error=True)
    finally:
        connection.disconnect()
