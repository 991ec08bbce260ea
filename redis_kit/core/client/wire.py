"""Reading, writing and the state of a connection of redis-py. The only file that uses private parts of redis-py.

Short replies are read here, at a third of the cost; the client library parses all others. The tests in
``tests/core/client/test_wire.py`` fail if redis-py changes one of these parts.
"""

import _socket
import os
import select
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from socket import socket
from ssl import SSLSocket
from typing import Any

from redis.exceptions import ConnectionError as ClientConnectionError
from redis.exceptions import TimeoutError as ClientTimeoutError

from redis_kit.core.client.deadlines import Deadline

SIZE = 65536  # bytes taken from the socket at once
# A class whose sockets os.write() can write to, unlike those for TLS, and those of gevent, which replaces this class.
PLAIN = socket if issubclass(socket, _socket.socket) else None
MOMENT = 0.01  # seconds for another look after a timeout: it may be this process that was stopped, not the server


def exchange(connection: Any, command: bytes) -> Any:
    """Send a packed command and return its reply. Raises errors of redis-py, or OSError.

    Nothing may be left to read from before. The library's parser gets all but short replies, and reads on.
    """
    sock = connection._sock
    _send(sock, command)
    feed = _FEEDS.get(type(connection._parser).__name__)
    if feed is None:
        return read(connection)
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
    feed(connection._parser, data)
    return read(connection)


async def asend(connection: Any, commands: bytes) -> None:
    """Send packed commands."""
    # On Python 3.11 the client library's own way, wait_for(), swallows a cancellation that comes at that moment.
    connection._writer.write(commands)
    if connection._writer.transport.get_write_buffer_size():
        await connection._writer.drain()


def read(connection: Any) -> Any:
    """Return the next reply, parsed by the client library. The caller drops the connection if that fails."""
    try:
        return connection.read_response(disconnect_on_error=False)
    except ClientTimeoutError:
        if not _has_news(connection._sock, MOMENT):
            raise
        return connection.read_response(disconnect_on_error=False)


def set_timeout(connection: Any, seconds: float) -> None:
    """Limit each wait of a connection that is open to some seconds."""
    connection._sock.settimeout(seconds)


def is_open(connection: Any) -> bool:
    """Tell whether a connection was opened and not closed by this process since."""
    return connection._sock is not None


def is_open_async(connection: Any) -> bool:
    """See is_open()."""
    return connection._writer is not None


def is_usable(connection: Any) -> bool:
    """Tell whether a connection is open and silent.

    It isn't if the server closed it while it was idle, or if a reply came after its caller had stopped waiting.
    """
    sock = connection._sock
    if sock is None:
        return False
    if isinstance(sock, SSLSocket):
        try:
            return not connection.can_read()
        except (ClientConnectionError, OSError):
            return False
    return not _has_news(sock)


def is_usable_async(connection: Any) -> bool:
    """See is_usable()."""
    writer = connection._writer
    # The stream knows only what its loop has read so far, and the loop may not have run since: so the kernel is asked.
    if writer is None or writer.is_closing() or connection._reader.at_eof() or connection._reader._buffer:
        return False
    return not _has_news(writer.get_extra_info("socket"))


def abort_async(connection: Any) -> None:
    """Close a connection at once.

    Nothing is awaited here: a cancellation can't come in between, and the event loop may be closed by now.
    """
    connection._parser.on_disconnect()
    writer, connection._reader, connection._writer = connection._writer, None, None
    if writer is None:
        return
    try:
        writer.transport.abort()
    except RuntimeError:
        getattr(writer.get_extra_info("socket"), "_sock", writer).close()


@contextmanager
def limited_steps(connection: Any, *, connect: float, read: float) -> Iterator[None]:
    """Limit each step of opening a connection: if a loop was late for one, the server is not at fault at the next."""
    open_socket, read_response = connection._connect, connection.read_response

    async def connect_in_time() -> None:
        async with Deadline(connect):
            await open_socket()

    async def read_in_time(*args: Any, **options: Any) -> Any:
        async with Deadline(read):
            return await read_response(*args, **options)

    connection._connect, connection.read_response = connect_in_time, read_in_time
    try:
        yield
    finally:
        del connection._connect, connection.read_response


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


def _feed_python(parser: Any, data: bytes) -> None:
    buffer = parser._buffer._buffer
    buffer.write(data)
    buffer.seek(0)


def _feed_hiredis(parser: Any, data: bytes) -> None:
    parser._reader.feed(data)


# By the name of the library's parser; one that is not known reads from the socket itself.
_FEEDS = {"_RESP2Parser": _feed_python, "_HiredisParser": _feed_hiredis}
