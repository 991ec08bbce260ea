"""Replay an access log to the site: every line as a real request, from the visitor's address."""

import contextlib
import http.client
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from demo import access_log
from demo.access_log import Hit
from demo.process import Failed

THREADS = 6
TIMEOUT = 15.0  # seconds for one answer


class Answer:
    """The site's answer to one request."""

    __slots__ = ("content_type", "status")

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.content_type = response.getheader("Content-Type") or ""
        response.read()


class Replay:
    """The requests of a log, sent in several threads at a limited rate."""

    def __init__(self, port: int, path: Path, *, rate: float, seen: Callable[[Hit, Answer], None]) -> None:
        """Prepare a replay. ``seen`` is called with each request and its answer, one at a time."""
        self.port, self.rate, self.seen = port, rate, seen
        self.lines = access_log.read(path)
        self.taking, self.telling = threading.Lock(), threading.Lock()
        self.unreadable = 0
        self.statuses: Counter[int] = Counter()
        self.errors: list[Exception] = []
        self.seconds = 0.0

    @property
    def sent(self) -> int:
        """Return the number of requests that were answered."""
        return self.statuses.total()

    def run(self, *, check: Callable[[], None]) -> None:
        """Send all requests. ``check`` is called five times a second and may raise. Raises Failed if the site fails."""
        self.start = time.monotonic()
        self.due = self.start
        threads = [threading.Thread(target=self._send, daemon=True) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                check()
                thread.join(0.2)
        self.seconds = time.monotonic() - self.start
        if self.errors:
            raise Failed(f"The replay stopped after {self.sent} requests: {self.errors[0]!r}")

    def _send(self) -> None:
        try:
            with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT)) as connection:
                for hit in self._turns():
                    answer = ask(connection, hit)
                    with self.telling:
                        self.statuses[answer.status] += 1
                        self.seen(hit, answer)
        except Exception as error:  # run() raises it
            self.errors.append(error)

    def _turns(self) -> Iterator[Hit]:
        """Yield requests at their time, until the end of the log or the first error."""
        while not self.errors:
            with self.taking:
                hit = next(self.lines, ...)
                if hit is None:
                    self.unreadable += 1
                    continue
                due = self.due = max(self.due + 1 / self.rate, time.monotonic() - 0.1)
            if hit is ...:
                return
            time.sleep(max(0.0, due - time.monotonic()))
            yield hit


def ask(connection: http.client.HTTPConnection, hit: Hit) -> Answer:
    """Send the request on a connection that stays open. If the site has closed it, reconnect once."""
    headers = {"X-Forwarded-For": hit.address}
    headers |= {name: text for name, text in (("User-Agent", hit.agent), ("Referer", hit.referer)) if text}
    if hit.method == "POST":
        headers["Content-Length"] = "0"
    for last in (False, True):
        try:
            connection.putrequest(hit.method, hit.target, skip_accept_encoding=True)
            for name, text in headers.items():
                connection.putheader(name, text.encode("latin-1"))
            connection.endheaders()
            return Answer(connection.getresponse())
        except (http.client.RemoteDisconnected, ConnectionError):
            connection.close()
            if last:
                raise
    raise AssertionError
