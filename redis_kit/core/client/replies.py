"""Replies off the wire: the short ones read here, at a third of the cost, and all others by the client library."""

from typing import Any

from redis.exceptions import TimeoutError as ClientTimeoutError

from redis_kit.core.client.wire import has_news

SIZE = 65536  # bytes taken from the socket at once
MOMENT = 0.01  # seconds for another look after a timeout: it may be this process that was stopped, not the server


def read(connection: Any) -> Any:
    """Return the reply to the command that was sent last. Raises what the client library raises, or OSError.

    Nothing may be left to read from before; the library's parser gets what is no short reply, and reads on.
    """
    feed = _feeds.get(type(connection._parser).__name__)
    if feed is None:
        return parsed(connection)
    try:
        data = connection._sock.recv(SIZE)
    except TimeoutError:
        if not has_news(connection._sock, MOMENT):
            raise
        data = connection._sock.recv(SIZE)
    kind, end = data[:1], data[-2:] == b"\r\n"
    if kind == b"$" and end:
        length, _, text = data.partition(b"\r\n")
        if len(text) == int(length[1:]) + 2:
            return text[:-2]
    elif kind == b":" and end and data.count(b"\r\n") == 1:
        return int(data[1:-2])
    feed(connection._parser, data)
    return parsed(connection)


def parsed(connection: Any) -> Any:
    """Return the next reply, read by the client library. The caller drops the connection where that fails."""
    try:
        return connection.read_response(disconnect_on_error=False)
    except ClientTimeoutError:
        if not has_news(connection._sock, MOMENT):
            raise
        return connection.read_response(disconnect_on_error=False)


def _to_python(parser: Any, data: bytes) -> None:
    buffer = parser._buffer._buffer
    buffer.write(data)
    buffer.seek(0)


def _to_hiredis(parser: Any, data: bytes) -> None:
    parser._reader.feed(data)


# By the name of the library's parser; one that is not known reads from the socket itself.
_feeds = {"_RESP2Parser": _to_python, "_HiredisParser": _to_hiredis}
