"""The answers of a supervisor over HTTP: whether it is well, alive and ready, and the metrics."""

import contextlib
import json
import logging
import socket
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any

from redis_kit.core import conf, text
from redis_kit.core.errors import KeyConflict
from redis_kit.core.metrics.families import Metric, Sample
from redis_kit.queues.settings import QueueSettings
from redis_kit.queues.worker.options import Options
from redis_kit.queues.worker.supervisor.child import UNRESPONSIVE, Child
from redis_kit.queues.worker.supervisor.heartbeat import Heartbeat

logger = logging.getLogger("redis_kit.worker")
CHILDREN = Metric("redis_kit_worker_children", "gauge", "Child processes of this worker.")
JOBS = Metric("redis_kit_worker_jobs_run_total", "counter", "Jobs that this worker ran.")
RAN = Metric("redis_kit_worker_run_seconds_total", "counter", "Seconds for which its jobs ran, added up.")
READY = Metric("redis_kit_worker_ready", "gauge", "Whether this worker claims jobs.")
WAIT_VALIDITY = 60.0  # seconds for which the report of a child about a wait holds
REQUEST = 4096  # bytes of a request, at most
REQUEST_TIMEOUT = 2.0  # seconds in which it has to arrive
MOST_CALLERS = 16  # of a port at a time: idle ones of one port do not block the other
ANSWER_TIMEOUT = 1.0  # seconds in which a caller has to take an answer


class Probes:
    """The health port and the metrics port of a supervisor: one port if both have the same number.

    Raises OSError if a port is taken, and ImportError without the package for metrics.
    """

    def __init__(self, options: Options, heartbeat: Heartbeat) -> None:
        self._options, self._heartbeat, self._parent = options, heartbeat, heartbeat.parent
        self._ended = 0, 0.0  # the jobs of children that have ended, and their seconds
        self._waits: dict[str, tuple[float, float]] = {}  # by what waits: the seconds, and when a child said so
        self._exposition: Callable[..., tuple[bytes, str]] | None = None
        if options.metrics_port is not None:
            from redis_kit.core.metrics.prometheus import exposition

            self._exposition = exposition
        self._listening: list[socket.socket] = []
        # Of each its port, when its request is to be here, and the beginning of that.
        self._callers: dict[socket.socket, tuple[socket.socket, float, bytes]] = {}
        family = socket.AF_INET6 if ":" in options.address else socket.AF_INET
        for port in dict.fromkeys(port for port in (options.health_port, options.metrics_port) if port is not None):
            listening = socket.create_server((options.address, port), family=family, backlog=MOST_CALLERS)
            listening.setblocking(False)
            self._listening.append(listening)

    def sockets(self) -> list[socket.socket]:
        """Return the sockets to select by."""
        return [*self._listening, *self._callers]

    def serve(self, readable: list[Any]) -> None:
        """Answer requests, and close connections that take too long."""
        for listening in self._listening:
            callers = sum(port is listening for port, *_ in self._callers.values())
            if listening in readable and callers < MOST_CALLERS:
                with contextlib.suppress(OSError):
                    caller, _ = listening.accept()
                    caller.setblocking(False)
                    self._callers[caller] = listening, monotonic() + REQUEST_TIMEOUT, b""
                    readable = [*readable, caller]  # in an outage it takes seconds until the next look
        for caller, (_, until, _) in list(self._callers.items()):
            if caller in readable:
                self._read_request(caller)
            elif monotonic() > until:
                self._hang_up(caller)

    def close(self) -> None:
        """Close the ports, in this process."""
        for connection in self.sockets():
            connection.close()
        self._callers.clear()

    def _read_request(self, caller: socket.socket) -> None:
        try:
            chunk = caller.recv(REQUEST)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        port, until, request = self._callers[caller]
        request += chunk
        if b"\r\n\r\n" in request:
            with contextlib.suppress(OSError):
                caller.settimeout(ANSWER_TIMEOUT)
                caller.sendall(self._response(request.split(b" ", 2)))
        elif chunk and len(request) <= REQUEST:
            self._callers[caller] = port, until, request
            return
        self._hang_up(caller)

    def _response(self, request: list[bytes]) -> bytes:
        method, path = (*request, b"", b"")[:2]
        if method not in (b"GET", b"HEAD"):
            return _encoded("405 Method Not Allowed", {"detail": "GET only"}, headers="Allow: GET, HEAD\r\n")
        response = self._page(path.partition(b"?")[0].decode("latin-1"))
        return response if method == b"GET" else response.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"

    def _page(self, path: str) -> bytes:
        reports = {"/healthz": self.health, "/livez": self.liveness, "/readyz": self.readiness}
        if path in reports:
            details = reports[path]()
            return _encoded("503 Service Unavailable" if details["status"] == "failing" else "200 OK", details)
        if path == "/metrics" and self._exposition:
            body, content_type = self._exposition(own=self.samples())
            return _encoded("200 OK", body, content_type)
        return _encoded("404 Not Found", {"detail": "only /healthz, /livez, /readyz, /metrics are served"})

    def _hang_up(self, caller: socket.socket) -> None:
        del self._callers[caller]
        caller.close()

    def note_wait(self, text: str, seconds: float) -> None:
        """Note for how many seconds something waits, as a child says: "a call waits in the outbox"."""
        self._waits[text] = seconds, monotonic()

    def note_end(self, child: Child) -> None:
        """Note that a child has ended, to count its jobs further on."""
        self._ended = self._ended[0] + child.board.done, self._ended[1] + child.board.ran

    def samples(self) -> list[Sample]:
        """Return the metrics of this worker alone."""
        boards = [child.board for child in self._parent.children]
        return [
            CHILDREN.sample(len(boards)),
            JOBS.sample(self._ended[0] + sum(board.done for board in boards)),
            RAN.sample(self._ended[1] + sum(board.ran for board in boards)),
            READY.sample(self.readiness()["status"] == "ok"),
        ]

    def health(self) -> dict[str, Any]:
        """Return whether the worker is well; the status ``failing`` means that it is not."""
        silent, unanswered = self._silence()
        waits = {} if unanswered else self._heartbeat.waits  # older ones say nothing about now
        late = [name for name, wait in waits.items() if wait > self._options.max_wait]
        broken = self._heartbeat.broken
        damaged = {name: str(error) for name, error in broken.items() if isinstance(error, KeyConflict)}
        unread = {name: error for name, error in broken.items() if name not in damaged}
        refused = {} if unanswered else self._heartbeat.refused
        limit = f"more than {text.number(self._options.max_wait)} s"
        failing = {
            "no child is alive": not self._parent.children,
            unanswered: bool(unanswered),
            f"a job of {', '.join(late)} waits for {limit}": bool(late),
            **{f"{text} for {limit}": self._is_late(*wait) for text, wait in self._waits.items()},
            **{f"queue {name} can't be read: {error}": True for name, error in unread.items()},
        }
        # A new process, as an orchestrator starts one after a 503, mends neither a damaged key nor a full server.
        degraded = {
            f"{', '.join(damaged)} {'has a damaged key' if len(damaged) == 1 else 'have damaged keys'}": bool(damaged),
            f"the server refuses writes to {', '.join(refused)}": bool(refused),
        }
        details = {**_status(failing, degraded), "damaged": damaged, "children": len(self._parent.children)}
        details |= {"waits": waits, "refused": refused, "error": self._heartbeat.error}
        return {**details, "silent": round(silent, 3)}

    def readiness(self) -> dict[str, Any]:
        """Return whether the worker claims jobs; the status ``failing`` means that it does not."""
        silent, unanswered = self._silence()
        reasons = {
            "no child is alive": not self._parent.children,
            unanswered: bool(unanswered),
            "the worker is quiet or stopping": self._parent.quiet or self._parent.stopping,
        }
        return {**_status(reasons), "silent": round(silent, 3)}

    def liveness(self) -> dict[str, Any]:
        """Return whether a child responds, whatever the server and the queues do; ``failing`` means that none does."""
        boards = [child.board for child in self._parent.children]
        responds = any(board.silence < UNRESPONSIVE for board in boards)
        return _status({"no child is alive": not boards, "no child responds": bool(boards) and not responds})

    def _silence(self) -> tuple[float, str]:
        """Return for how many seconds no heartbeat was answered, and what is wrong if these are too many."""
        silent, error = monotonic() - self._heartbeat.answered, self._heartbeat.error
        if silent <= conf.section(QueueSettings).WORKER_TIMEOUT:
            return silent, ""
        return silent, f"the server does not answer{': ' if error else ''}{error}"

    def _is_late(self, seconds: float, at: float) -> bool:
        # Another supervisor's child may have looked since.
        return monotonic() - at < WAIT_VALIDITY and seconds > self._options.max_wait


def _status(failing: Mapping[str, bool], degraded: Mapping[str, bool] | None = None) -> dict[str, Any]:
    problems = [reason for reason, holds in failing.items() if holds]
    reasons = problems + [reason for reason, holds in (degraded or {}).items() if holds]
    return {"status": "failing" if problems else "degraded" if reasons else "ok", "reasons": reasons}


def _encoded(
    status: str, content: bytes | dict[str, Any], content_type: str = "application/json", headers: str = ""
) -> bytes:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\n"
    fixed = "Cache-Control: no-store\r\nConnection: close\r\n"
    return f"{head}{fixed}{headers}Content-Length: {len(body)}\r\n\r\n".encode() + body
