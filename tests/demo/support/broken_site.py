"""Checks of a site that takes each form and refuses nothing: ``python -m tests.demo.support.broken_site``."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import SimpleNamespace
from typing import Any

import django


class Handler(BaseHTTPRequestHandler):
    """Answers each request with an empty page, or with a redirection after a form."""

    def do_GET(self) -> None:
        """Show an empty page."""
        self._answer(200)

    def do_POST(self) -> None:
        """Take a form."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(302)

    def _answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Set-Cookie", "csrftoken=any")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args: object) -> None:
        """Print nothing."""


@contextmanager
def site() -> Iterator[Any]:
    """Run the site, and yield what the checks need of a session."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield SimpleNamespace(port=server.server_address[1], check=lambda: None)
        server.shutdown()
        thread.join()


def main() -> int:
    """Carry out some of the checks, and one that passes after those that fail."""
    django.setup()
    from demo import checks

    chosen = [(name, check) for name, check in checks.CHECKS if name in ("site", "throttle", "sign-in streak")]
    checks.CHECKS = (*chosen, ("fine", lambda site: "1 figure"))
    with site() as session:
        return checks.run_flow(session, 0.5)


if __name__ == "__main__":
    raise SystemExit(main())
