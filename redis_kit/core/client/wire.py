"""Reading, writing and the state of a connection of redis-py. The only file that uses private parts of redis-py.

Short replies are read here, at a third of the cost; the client library parses all others. Where a release of redis-py
lacks one of these parts, its public methods do the work, and one line of the log says so.
"""

import _socket
import asyncio
import logging
import os
import select
import threading
from collections.abc import Sequence
from contextlib import suppress
from io import BytesIO
from operator import attrgetter
from socket import socket
from ssl import SSLSocket
from types import TracebackType
from typing import Any

import redis
from redis.exceptions import ConnectionError as ClientConnectionError
from redis.exceptions import TimeoutError as ClientTimeoutError

from redis_kit.core.steps import Command

logger = logging.getLogger("redis_kit.connections")

SIZE = 65536  # bytes taken from the socket at once
# A class whose sockets os.write() can write to, unlike those for TLS, and those of gevent, which replaces this class.
PLAIN = socket if issubclass(socket, _socket.socket) else None
MOMENT = 0.01  # seconds for another look after a timeout: it may be this process that was stopped, not the server
# Where a parser of the library keeps what it has not parsed yet, by the parser's name.
_BUFFERS = {"_RESP2Parser": attrgetter("_buffer._buffer"), "_HiredisParser": attrgetter("_reader")}
ROUNDS = 10  # of the loop, to read what came in before the limit
LATE = 0.02  # seconds; a loop that needs longer for these rounds was not at work when the reply came
MORE = 2  # limits that a late loop gets on top
_missing: set[str] = set()  # private parts, as they were logged


class Deadline:
    """Limit the time of its block: raise TimeoutError after some seconds, as asyncio.timeout() does.

    When the time is over, the loop first reads what has come in. If the loop was blocked or overloaded at that moment,
    it gets the same time again, twice at most: the server may have answered, and nobody looked.
    """

    __slots__ = ("_before", "_due", "_expired", "_handle", "_loop", "_more", "_seconds", "_task")

    def __init__(self, seconds: float) -> None:
        self._seconds, self._more, self._expired = seconds, MORE, False

    async def __aenter__(self) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("A connection can be used in a task only.")
        self._task, self._before, self._loop = task, task.cancelling(), asyncio.get_running_loop()
        self._start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._handle.cancel()
        if self._expired and self._task.uncancel() <= self._before and kind is asyncio.CancelledError:
            raise TimeoutError(f"no answer within {self._seconds:g} s") from error

    def _start(self) -> None:
        self._due = self._loop.time() + self._seconds
        self._handle: asyncio.Handle = self._loop.call_at(self._due, self._look, ROUNDS)

    def _look(self, rounds: int) -> None:
        if rounds:
            self._handle = self._loop.call_soon(self._look, rounds - 1)
        elif self._more and self._loop.time() - self._due > LATE:
            self._more -= 1
            self._start()
        else:
            self._expired = True
            self._task.cancel()


def exchange(connection: Any, command: bytes) -> Any:
    """Send a packed command and return its reply. Raises errors of redis-py, or OSError.

    Nothing may be left to read from before. The library's parser gets all but short replies, and reads on.
    """
    try:
        sock, parser = connection._sock, connection._parser
        buffer = _BUFFERS[type(parser).__name__](parser)
    except (AttributeError, KeyError) as error:
        _note_missing(error)
        connection.send_packed_command([command], check_health=False)
        return read(connection)
    _send(sock, command)
    try:
        data = sock.recv(SIZE)
    except TimeoutError:
        if not _has_news(sock, MOMENT):
            raise
        data = sock.recv(SIZE)
    kind, end = data[:1], data[-2:] == b"\r\n"
    if kind == b"$" and end:
        length, _, text = data.partition(b"\r\n")
        if len(text) == int(length[1:]) + 2:
            return text[:-2]
    elif kind == b":" and end and data.count(b"\r\n") == 1:
        return int(data[1:-2])
    if isinstance(buffer, BytesIO):
        buffer.write(data)
        buffer.seek(0)
    else:
        buffer.feed(data)
    return read(connection)


async def asend(connection: Any, commands: bytes) -> None:
    """Send packed commands."""
    try:
        writer = connection._writer
    except AttributeError as error:
        _note_missing(error)
        await connection.send_packed_command([commands], check_health=False)
        return
    # On Python 3.11 the client library's own way, wait_for(), swallows a cancellation that comes at that moment.
    writer.write(commands)
    if writer.transport.get_write_buffer_size():
        await writer.drain()


def read(connection: Any) -> Any:
    """Return the next reply, parsed by the client library. The caller drops the connection if that fails."""
    try:
        return connection.read_response(disconnect_on_error=False)
    except ClientTimeoutError:
        if not connection.can_read(timeout=MOMENT):
            raise
        return connection.read_response(disconnect_on_error=False)


def read_after(connection: Any, seconds: float) -> Any:
    """Return the next reply, which may begin some seconds later."""
    if not (connection.can_read(timeout=seconds) or connection.can_read(timeout=MOMENT)):
        raise TimeoutError("no answer in time")
    return read(connection)


def await_news(connections: Sequence[Any], wake_up: socket, seconds: float) -> None:
    """Return when there may be something to read from a connection or a socket for wake-ups, or after some seconds.

    Replies that the library has read before must have been taken from it.
    """
    poll = select.poll()
    poll.register(wake_up, select.POLLIN)
    for connection in connections:
        try:
            if connection._sock is None:
                return  # to read from it tells why
            poll.register(connection._sock, select.POLLIN)
        except AttributeError as error:
            _note_missing(error)
            seconds = min(seconds, MOMENT)
    poll.poll(seconds * 1000)


def is_open(connection: Any) -> bool:
    """Tell whether a connection was opened and not closed by this process since."""
    try:
        return connection._sock is not None
    except AttributeError as error:
        _note_missing(error)
        return bool(connection.is_connected)


def is_open_async(connection: Any) -> bool:
    """See is_open()."""
    try:
        return connection._writer is not None
    except AttributeError as error:
        _note_missing(error)
        return bool(connection.is_connected)


def is_usable(connection: Any) -> bool:
    """Tell whether a connection is open and silent.

    It isn't if the server closed it while it was idle, or if a reply came after its caller had stopped waiting.
    """
    try:
        sock = connection._sock
    except AttributeError as error:
        _note_missing(error)
        return bool(connection.is_connected) and _is_silent(connection)
    if sock is None:
        return False
    return _is_silent(connection) if isinstance(sock, SSLSocket) else not _has_news(sock)


def _is_silent(connection: Any) -> bool:
    try:
        return not connection.can_read()
    except (ClientConnectionError, OSError):
        return False


def is_usable_async(connection: Any) -> bool | None:
    """See is_usable(). None if only is_silent() can tell."""
    try:
        writer, reader = connection._writer, connection._reader
        # The stream knows only what its loop has read so far, and the loop may not have run since: the kernel is asked.
        if writer is None or writer.is_closing() or reader.at_eof() or reader._buffer:
            return False
    except AttributeError as error:
        _note_missing(error)
        return None
    return not _has_news(writer.get_extra_info("socket"))


async def is_silent(connection: Any) -> bool:
    """Tell by the library's public methods whether a connection is open and silent."""
    if not connection.is_connected:
        return False
    for _ in range(2):  # the stream knows only what its loop has read
        await asyncio.sleep(0)
    try:
        return not await connection.can_read()
    except (ClientConnectionError, OSError):
        return False


def abort_async(connection: Any) -> None:
    """Close a connection at once.

    Nothing is awaited here: a cancellation can't come in between, and the event loop may be closed by now.
    """
    try:
        parser, writer, _ = connection._parser, connection._writer, connection._reader
    except AttributeError as error:
        _note_missing(error)
        # With nowait it awaits nothing, so one step is all of it. Without a loop, the garbage collector closes it.
        with suppress(StopIteration, RuntimeError, ClientTimeoutError):
            connection.disconnect(nowait=True).send(None)
        return
    parser.on_disconnect()
    connection._reader = connection._writer = None
    if writer is None:
        return
    try:
        writer.transport.abort()
    except RuntimeError:
        getattr(writer.get_extra_info("socket"), "_sock", writer).close()


async def open_async(connection: Any, *, connect: float, read: float) -> None:
    """Open a connection. Each step has a limit: if a loop was late for one, the server is not at fault at the next."""
    try:
        open_socket, read_response = connection._connect, connection.read_response
    except AttributeError as error:
        _note_missing(error)
        async with Deadline(connect + read):
            await connection.connect()
        return

    async def connect_in_time() -> None:
        async with Deadline(connect):
            await open_socket()

    async def read_in_time(*args: Any, **options: Any) -> Any:
        async with Deadline(read):
            return await read_response(*args, **options)

    connection._connect, connection.read_response = connect_in_time, read_in_time
    try:
        await connection.connect()
    finally:
        del connection._connect, connection.read_response


def _note_missing(error: Exception) -> None:
    part = str(error.name if isinstance(error, AttributeError) else error.args[0])
    if part not in _missing:
        _missing.add(part)
        logger.warning(
            "redis-py %s lacks %s, a private part that redis_kit uses: its public methods are used instead, which are "
            "slower.",
            redis.__version__,
            part,
        )


def _send(sock: Any, data: bytes) -> None:
    """Send data. The method of a socket with a time limit asks for room first, which there nearly always is."""
    try:
        left = data[os.write(sock.fileno(), data) :] if type(sock) is PLAIN else data
    except BlockingIOError:
        left = data
    if left:
        sock.sendall(left)


def _has_news(sock: Any, seconds: float = 0) -> bool:
    """Tell whether there is something to read, or comes within some seconds."""
    return bool(_of_thread.polls[sock.fileno()].poll(seconds * 1000))


class _Polls(dict[int, Any]):
    """Polls by file descriptor: to make one costs more than to use it."""

    def __missing__(self, fd: int) -> Any:
        poll = self[fd] = select.poll()
        poll.register(fd, select.POLLIN)
        return poll


class _OfThread(threading.local):
    """The polls of a thread, as two threads can't use one at a time."""

    def __init__(self) -> None:
        self.polls = _Polls()


_of_thread = _OfThread()


try:
    from hiredis import pack_command
except ImportError:
    pack_command = None

_LENGTHS = [b"\r\n$%d\r\n" % length for length in range(256)]  # made once: half of the work of packing


def _packed(command: Command) -> bytes:
    """Return a command as it is sent. Text goes as UTF-8; a number as Python writes it, exact for floats too."""
    parts = [b"*%d" % len(command)]
    for argument in command:
        if isinstance(argument, str):
            argument = argument.encode()
        elif isinstance(argument, int):
            argument = b"%d" % argument  # the repr() of a member of IntegerChoices has its name
        elif isinstance(argument, float):
            argument = float.__repr__(argument).encode()
        length = len(argument)
        parts.append(_LENGTHS[length] if length < 256 else b"\r\n$%d\r\n" % length)
        parts.append(argument)
    parts.append(b"\r\n")
    return b"".join(parts)


def packed(command: Command) -> bytes:
    """Return a command as it is sent, packed by hiredis if it is installed, in half of the time."""
    try:
        return pack_command(command)  # type: ignore[no-any-return]
    except TypeError:  # hiredis takes no member of IntegerChoices
        return _packed(command)


if pack_command is None:
    packed = _packed
