"""What the kernel knows of a connection, asked without reading from it."""

import select
from ssl import SSLSocket
from typing import Any

from redis.exceptions import ConnectionError as ClientConnectionError


def is_spoilt(connection: Any) -> bool:
    """Say whether the server closed an idle connection, or an answer came after its caller had given up."""
    if isinstance(connection._sock, SSLSocket):
        try:
            return bool(connection.can_read())
        except (ClientConnectionError, OSError):
            return True
    return has_news(connection._sock)


def is_spoilt_async(connection: Any) -> bool:
    """See is_spoilt()."""
    # The stream knows only what its loop has read so far, and the loop may not have run since: so the kernel is asked.
    if connection._writer.is_closing() or connection._reader.at_eof() or connection._reader._buffer:
        return True
    return has_news(connection._writer.get_extra_info("socket"))


def has_news(sock: Any, seconds: float = 0) -> bool:
    """Say whether there is something to read, or comes within some seconds."""
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(seconds * 1000))
