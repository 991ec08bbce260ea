"""The line between a supervisor and its child: orders go down, a word now and then comes up, its end is news too."""

import contextlib
import socket
from collections.abc import Iterator
from threading import Lock
from urllib.parse import quote, unquote

MOST = 1 << 16  # bytes that wait for one who does not read


class Channel:
    """One end: a line of text for a word and its arguments, each quoted as in a URL, since ids may hold any byte.

    Nothing that is said is waited for, nor lost while the other end reads.
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
        """Say a word and its arguments; False where the other end has long stopped reading, and they were dropped."""
        text = " ".join(quote(str(word), errors="surrogateescape") for word in words)
        with self._lock:
            if len(self._unsent) > MOST:
                return False
            self._unsent += f"{text}\n".encode()
        self.flush()
        return True

    def flush(self) -> None:
        """Send what is left of what was said."""
        with self._lock:
            try:
                while self._unsent:
                    self._unsent = self._unsent[self._socket.send(self._unsent, socket.MSG_DONTWAIT) :]
            except BlockingIOError:
                return
            except OSError:
                self._unsent = b""  # who reads will see the end

    def read(self) -> Iterator[tuple[str, ...]]:
        """Yield what the other end says, as words, until that is gone."""
        while not self.ended:
            yield from self._received(0)

    def heard(self) -> list[tuple[str, ...]]:
        """Return what the other end has said by now; ``ended`` says whether that is gone."""
        found: list[tuple[str, ...]] = []
        with contextlib.suppress(BlockingIOError):
            while not self.ended:
                found += self._received(socket.MSG_DONTWAIT)
        return found

    def close(self) -> None:
        """Hang up, in this process."""
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
    """Return both ends of a new line."""
    first, second = socket.socketpair()
    return Channel(first), Channel(second)
