"""The clients of one server: a command is sent once, and its reply is returned, or an error of redis_kit is raised.

Before a command leaves this process a failure is plain; after that it is ``indeterminate``, and the connection is
closed so that a late reply can't be taken for the next one.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from copy import copy
from time import monotonic
from typing import Any, NoReturn, Self

from redis.exceptions import NoScriptError, ResponseError

from redis_kit.core.client import error_map, wire
from redis_kit.core.client.pools import AsyncPool, Pool, Server
from redis_kit.core.client.wire import Deadline, packed
from redis_kit.core.errors import RedisUnavailable
from redis_kit.core.steps import Argument, Command, writable


class _Guard:
    """The base of both clients. It translates errors and reports failures to the breaker."""

    is_cluster = False  # whether the keys of a command must be in one slot
    _pool: Pool | AsyncPool

    def __init__(self, server: Server) -> None:
        self.where, self.breaker, self._read = server.where, server.breaker, server.read
        self._wait, self._in_cluster = server.wait, server.in_cluster

    def within(self, seconds: float) -> Self:
        """Return this client, whose calls then wait for a connection for some seconds at most."""
        if seconds >= self._wait:
            return self
        hurried = copy(self)
        hurried._wait = seconds
        return hurried

    @property
    def primary(self) -> str:
        """Return the address of the primary that the Sentinels named last, "" without Sentinels."""
        return self._pool.factory.primary

    def check(self) -> None:
        """Raise RedisUnavailable if the breaker is open."""
        if self.breaker and self.breaker.is_open:
            self.breaker.refuse()

    def translated(self, error: Exception, *, sent: bool, counts: bool = True) -> Exception:
        """Return the error of redis_kit for one of redis-py. The breaker counts it, unless another call will tell."""
        where = f"{self.where}, last at {self.primary}" if self.primary else self.where
        translated = error_map.translate(error, sent=sent, where=where, in_cluster=self._in_cluster)
        if self.breaker and isinstance(translated, RedisUnavailable) and translated is not error:
            if counts:
                self.breaker.failed(translated)
            else:
                self.breaker.sign(translated, str(translated))
        return translated

    def _succeeded(self, connection: Any, replies: Sequence[Any] = ()) -> None:
        """Return a connection after a call that the server answered, and tell the breaker, unless it can't serve."""
        self._pool.give(connection)
        if self.breaker and self.breaker.failures and not any(isinstance(reply, RedisUnavailable) for reply in replies):
            self.breaker.succeeded()

    def _fail(self, connection: Any, error: BaseException) -> NoReturn:
        """Raise the caller's error for one that came while it had a connection."""
        try:
            if error_map.must_drop(error):
                self._pool.drop(connection)
            else:
                self._pool.give(connection)
            self._raise(error)
        finally:
            del connection, error  # the error's traceback refers to this frame: in a circle, both would live on

    def _raise(self, error: BaseException, *, sent: bool = True, counts: bool = True) -> NoReturn:
        """Raise the error of redis_kit for an exception. Anything that ends a task or thread is raised as it is."""
        translated = self.translated(error, sent=sent, counts=counts) if isinstance(error, Exception) else error
        try:
            if translated is error:
                raise error  # not from itself, or its causes would be a circle
            raise translated from error
        finally:
            del error, translated  # see _fail()


class Client(_Guard):
    """A client of one server or Sentinel service, for all threads of a process."""

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self._pool: Pool = Pool(server, self.check)

    def call(self, *command: Argument) -> Any:
        """Send one command and return its reply."""
        connection = self._take()
        try:
            reply = wire.exchange(connection, packed(command))
        except BaseException as error:
            self._fail(connection, error)
        self._succeeded(connection)
        return reply

    def block(self, timeout: float, *command: Argument) -> Any:
        """Send a command that may wait on the server for ``timeout`` seconds, and return its reply."""
        connection = self._take(to_block=True)
        try:
            connection.send_packed_command([packed(command)])
            reply = wire.read_after(connection, timeout + self._read)
        except BaseException as error:
            self._fail(connection, error)
        self._succeeded(connection)
        return reply

    def watch(
        self, timeout: float, pause: float, look: Callable[[], float | None], waiting: Command, next_one: Command
    ) -> Any:
        """Send a command that may wait on the server, and behind it one that runs the moment that one is over.

        After each pause without a reply, ``look`` is called. It returns the seconds until its next call, or None to end
        the wait. Returns the second command's reply, also if it is an error; None if ``look`` ended the wait.
        Waits for a connection no longer than for the first pause. The breaker does not count a lost connection here:
        proxies cut those that wait, and the caller's next call tells more.
        """
        connection = self._take(to_block=True, wait=min(timeout, pause))
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
            self._raise(error, counts=False)
        self._succeeded(connection)
        return reply

    def batch(self, commands: Sequence[Command]) -> list[Any]:
        """Send several commands at once and return their replies, errors among them."""
        connection, answers = self._take(), []
        try:
            connection.send_packed_command([b"".join(map(packed, commands))])
            for _ in commands:
                try:
                    answers.append(wire.read(connection))
                except ResponseError as error:
                    if error_map.closes(error):
                        raise
                    answers.append(self.translated(error, sent=True))
        except BaseException as error:
            self._fail(connection, error)
        self._succeeded(connection, answers)
        return answers

    def dedicated(self) -> Any:
        """Return a connection of redis-py that is in no pool, to be opened and closed by the caller."""
        return self._pool.factory.make()

    def node_of(self, key: str, *, moved: bool = False) -> Self:
        """Return the client of the server that has a key: this one. See ClusterClient.node_of()."""
        return self

    def close(self) -> None:
        """Close its connections."""
        self._pool.close()

    def _take(self, *, to_block: bool = False, wait: float = math.inf) -> Any:
        self.check()
        try:
            return self._pool.take(min(wait, self._wait), to_block=to_block)
        except Exception as error:
            self._raise(error, sent=False)


class AsyncClient(_Guard):
    """A client of one server or Sentinel service, for all tasks of one event loop. See Client."""

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self._pool = AsyncPool(server, self.check)

    def call(self, *command: Argument) -> Awaitable[Any]:
        """See Client.call()."""
        return self._exchange(self._read, command)

    def block(self, timeout: float, *command: Argument) -> Awaitable[Any]:
        """See Client.block()."""
        return self._exchange(timeout + self._read, command, to_block=True)

    async def watch(
        self,
        timeout: float,
        pause: float,
        look: Callable[[], Awaitable[float | None]],
        waiting: Command,
        next_one: Command,
    ) -> Any:
        """See Client.watch()."""
        connection, reading = await self._take(to_block=True, wait=min(timeout, pause)), None
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
            self._raise(error, counts=False)
        self._succeeded(connection)
        return reply

    async def batch(self, commands: Sequence[Command]) -> list[Any]:
        """See Client.batch()."""
        connection, answers = await self._take(), []
        try:
            async with Deadline(self._read):
                await wire.asend(connection, b"".join(map(packed, commands)))
            for _ in commands:
                try:
                    async with Deadline(self._read):
                        answers.append(await connection.read_response(disconnect_on_error=False))
                except ResponseError as error:
                    if error_map.closes(error):
                        raise
                    answers.append(self.translated(error, sent=True))
        except BaseException as error:
            self._fail(connection, error)
        self._succeeded(connection, answers)
        return answers

    def close(self) -> None:
        """Close its connections; those in use, when they are returned. To be called in its loop."""
        self._pool.close()

    def end(self) -> None:
        """Close all its connections; the loop has ended, or ends."""
        self._pool.end()

    async def _exchange(self, seconds: float, command: Command, *, to_block: bool = False) -> Any:
        connection = await self._take(to_block=to_block)
        try:
            async with Deadline(seconds):
                await wire.asend(connection, packed(command))
                reply = await connection.read_response(disconnect_on_error=False)
        except BaseException as error:
            self._fail(connection, error)
        self._succeeded(connection)
        return reply

    async def _take(self, *, to_block: bool = False, wait: float = math.inf) -> Any:
        self.check()
        try:
            return await self._pool.take(min(wait, self._wait), to_block=to_block)
        except Exception as error:
            self._raise(error, sent=False)

    def _end(self, connection: Any, reading: "asyncio.Future[Any] | None") -> None:
        self._pool.drop(connection)
        if reading:
            reading.add_done_callback(lambda future: future.cancelled() or future.exception())  # or asyncio logs it
            reading.cancel()


def probe(make: Callable[[], Any], key: str) -> None:
    """Ask a server whether it takes writes, over a connection of its own; raises when it does not.

    Other refusals, such as those of an ACL, are answers.
    """
    connection = make()
    try:
        connection.connect()
        connection.send_command(*writable(key).command)
        connection.read_response(disconnect_on_error=True)
    except ResponseError as error:
        if error_map.cannot_serve(error):
            raise
    finally:
        connection.disconnect()
