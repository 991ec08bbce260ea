"""The channel between a supervisor and a worker process. Commands go down; its end is a message, too."""

import contextlib
import socket
from collections.abc import Iterator
from threading import Lock
from urllib.parse import quote, unquote

MOST = 1 << 16  # bytes that wait for a reader


class Channel:
    """One end. A message is a line of words, each quoted as in a URL, since ids may hold any byte.

    Sending never blocks, and nothing is lost while the other end reads.
    """

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._lock = Lock()
        self._unsent, self._unread = b"", b""
        self.ended = False

    def fileno(self) -> int:
        """Return the number to select by."""
        return self._socket.fileno()

    def say(self, *words: object) -> bool:
        """Send a word and its arguments. False if they were dropped because the other end stopped reading long ago."""
        text = " ".join(quote(str(word), errors="surrogateescape") for word in words)
        with self._lock:
            if len(self._unsent) > MOST:
                return False
            self._unsent += f"{text}\n".encode()
        self.flush()
        return True

    def flush(self) -> None:
        """Send what could not be sent before."""
        with self._lock:
            try:
                while self._unsent:
                    self._unsent = self._unsent[self._socket.send(self._unsent, socket.MSG_DONTWAIT) :]
            except BlockingIOError:
                return
            except OSError:
                self._unsent = b""  # the reader will see the end

    def read(self) -> Iterator[tuple[str, ...]]:
        """Yield the messages of the other end, as words, until it is gone."""
        while not self.ended:
            yield from self._received(0)

    def heard(self) -> list[tuple[str, ...]]:
        """Return the messages that have arrived. ``ended`` says whether the other end is gone."""
        messages: list[tuple[str, ...]] = []
        with contextlib.suppress(BlockingIOError):
            while not self.ended:
                messages += self._received(socket.MSG_DONTWAIT)
        return messages

    def close(self) -> None:
        """Close this end, in this process."""
        self._socket.close()

    def _received(self, flags: int) -> list[tuple[str, ...]]:
        try:
            chunk = self._socket.recv(4096, flags)
        except BlockingIOError:
            raise
        except OSError:
            chunk = b""
        self.ended = not chunk
        *lines, self._unread = (self._unread + chunk).split(b"\n")
        return [tuple(unquote(word, errors="surrogateescape") for word in line.decode().split(" ")) for line in lines]


def pair() -> tuple[Channel, Channel]:
    """Return both ends of a new channel."""
    first, second = socket.socketpair()
    return Channel(first), Channel(second)
