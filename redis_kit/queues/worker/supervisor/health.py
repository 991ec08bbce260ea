"""Answers ``GET /healthz`` out of the supervisor's loop, without a thread."""

import contextlib
import json
import socket
from collections.abc import Callable
from time import monotonic
from typing import Any

REQUEST = 4096  # bytes of a request, at most
PATIENCE = 2.0  # seconds in which it has to arrive
MOST = 16  # callers at a time

Report = Callable[[], tuple[bool, dict[str, Any]]]


class HealthServer:
    """Listens on 127.0.0.1. ``report`` says whether all is well, and the details."""

    def __init__(self, port: int, report: Report) -> None:
        self._report = report
        self._callers: dict[socket.socket, tuple[float, bytes]] = {}
        self._listening = socket.create_server(("127.0.0.1", port), backlog=MOST)
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
        except OSError:
            chunk = b""
        request += chunk
        if b"\r\n\r\n" in request:
            with contextlib.suppress(OSError):
                caller.send(self._answer(request.split(b" ", 2)))
        elif chunk and len(request) <= REQUEST:
            self._callers[caller] = until, request
            return
        self._hang_up(caller)

    def _answer(self, request: list[bytes]) -> bytes:
        method, path = (*request, b"", b"")[:2]
        if method not in (b"GET", b"HEAD"):
            return _response("405 Method Not Allowed", {"detail": "GET only"}, "Allow: GET, HEAD\r\n")
        if path.partition(b"?")[0] != b"/healthz":
            return _response("404 Not Found", {"detail": "only /healthz is served"})
        well, details = self._report()
        response = _response("200 OK" if well else "503 Service Unavailable", details)
        return response if method == b"GET" else response.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"

    def _hang_up(self, caller: socket.socket) -> None:
        del self._callers[caller]
        caller.close()


def _response(status: str, details: dict[str, Any], more: str = "") -> bytes:
    body = json.dumps(details).encode()
    fixed = "Content-Type: application/json\r\nCache-Control: no-store\r\nConnection: close\r\n"
    return f"HTTP/1.1 {status}\r\n{fixed}{more}Content-Length: {len(body)}\r\n\r\n".encode() + body
