"""Answers GET requests out of the supervisor's loop, without a thread."""

import contextlib
import json
import socket
from collections.abc import Callable
from time import monotonic
from typing import Any, NamedTuple

REQUEST = 4096  # bytes of a request, at most
PATIENCE = 2.0  # seconds in which it has to arrive
MOST = 16  # callers at a time

SENDING = 1.0  # seconds in which a caller has to take an answer


class Answer(NamedTuple):
    """The answer to a request."""

    status: str
    content_type: str
    body: bytes


class HealthServer:
    """Listens on an address. ``answer`` returns the answer for a path, or None if there is none."""

    def __init__(self, address: str, port: int, answer: Callable[[str], Answer | None]) -> None:
        self._answer_for = answer
        self._callers: dict[socket.socket, tuple[float, bytes]] = {}
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._listening = socket.create_server((address, port), family=family, backlog=MOST)
        self._listening.setblocking(False)

    def sockets(self) -> list[socket.socket]:
        """Return what to select by."""
        return [self._listening, *self._callers]

    def serve(self, readable: list[Any]) -> None:
        """Answer requests, and close connections that take too long."""
        if self._listening in readable and len(self._callers) < MOST:
            with contextlib.suppress(OSError):
                caller, _ = self._listening.accept()
                caller.setblocking(False)
                self._callers[caller] = monotonic() + PATIENCE, b""
                readable = [*readable, caller]  # in an outage it takes seconds until the next look
        for caller, (until, request) in list(self._callers.items()):
            if caller in readable:
                self._hear(caller, until, request)
            elif monotonic() > until:
                self._hang_up(caller)

    def close(self) -> None:
        """Close all of it, in this process."""
        for connection in self.sockets():
            connection.close()
        self._callers.clear()

    def _hear(self, caller: socket.socket, until: float, request: bytes) -> None:
        try:
            chunk = caller.recv(REQUEST)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        request += chunk
        if b"\r\n\r\n" in request:
            with contextlib.suppress(OSError):
                caller.settimeout(SENDING)
                caller.sendall(self._answer(request.split(b" ", 2)))
        elif chunk and len(request) <= REQUEST:
            self._callers[caller] = until, request
            return
        self._hang_up(caller)

    def _answer(self, request: list[bytes]) -> bytes:
        method, path = (*request, b"", b"")[:2]
        if method not in (b"GET", b"HEAD"):
            return _response(_detail("405 Method Not Allowed", "GET only"), "Allow: GET, HEAD\r\n")
        answer = self._answer_for(path.partition(b"?")[0].decode("latin-1"))
        response = _response(answer or _detail("404 Not Found", "only /healthz, /livez, /readyz, /metrics are served"))
        return response if method == b"GET" else response.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"

    def _hang_up(self, caller: socket.socket) -> None:
        del self._callers[caller]
        caller.close()


def _detail(status: str, text: str) -> Answer:
    return Answer(status, "application/json", json.dumps({"detail": text}).encode())


def _response(answer: Answer, more: str = "") -> bytes:
    head = f"HTTP/1.1 {answer.status}\r\nContent-Type: {answer.content_type}\r\n"
    fixed = "Cache-Control: no-store\r\nConnection: close\r\n"
    return f"{head}{fixed}{more}Content-Length: {len(answer.body)}\r\n\r\n".encode() + answer.body
