"""Page views under real HTTP: each answered page is counted, or dropped and counted as that.

``python -m tests.chaos.pageviews.http_load 20000 gunicorn --outage 2`` opens 20,000 pages of a site with two processes.
During two seconds of that Redis can't be reached, and the buffers hold 200 views. ``--kills 5`` kills five processes:
each may lose the views that waited in it. The exit code is 1 if other views were lost, or one was counted twice.
"""

import argparse
import contextlib
import http.client
import os
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

from tests.pageviews.support.web_servers import Site, gunicorn, uvicorn
from tests.pageviews.urls import BROWSER

SERVERS = {
    "gunicorn": lambda port: gunicorn(port, "--worker-class", "gthread", "--threads", "4"),
    "preload": lambda port: gunicorn(port, "--worker-class", "gthread", "--threads", "4", "--preload"),
    "uvicorn": lambda port: uvicorn(port, "--workers", "2", "--log-level", "warning"),
}
CLIENTS = 8
CAPACITY = 200
BATCH = 500


class Outcome(NamedTuple):
    """The pages that were answered, the requests without an answer, and what became of the views."""

    answered: int
    unanswered: int
    views: int
    lost: dict[str, int]
    kills: int

    @property
    def wrong(self) -> str:
        """Return what must not happen, or ""."""
        known = self.views + sum(self.lost.values())
        if known > self.answered + self.unanswered:
            return "views were counted twice"
        if known < self.answered - self.kills * (BATCH + CAPACITY):
            return "views were lost"
        return ""


def run(proxy, folder, requests, kind, *, outage=0.0, kills=0):
    """Return the outcome of a load on one kind of server."""
    from django.conf import settings

    from redis_kit.pageviews import PageViews
    from tests.fixtures.process import free_port

    port, site = free_port(), Site(Path(folder), zone=settings.TIME_ZONE, interval=0.2, capacity=CAPACITY)
    kit = {**settings.REDIS_KIT, "CONNECTIONS": {"default": proxy.connection}}
    server = site.start(port, SERVERS[kind](port), kit, own_interpreter=True)
    clients = [Client(port, requests // CLIENTS) for _ in range(CLIENTS)]
    killed = 0
    try:
        for client in clients:
            client.start()
        if outage:
            wait_until(clients, requests // 4)
            with proxy.fault("refuse"):
                time.sleep(outage)
        for number in range(kills):
            wait_until(clients, requests * (number + 1) // (kills + 1))
            killed += kill_worker(server.pid)
        for client in clients:
            client.join(300)
    finally:
        server.terminate()
        server.wait(60)
    answered, unanswered = sum(each.answered for each in clients), sum(each.unanswered for each in clients)
    return Outcome(answered, unanswered, PageViews.site(on_failure="raise").views(), site.lost(), killed)


class Client(threading.Thread):
    """A browser that opens pages one after another. A request without an answer is not repeated."""

    def __init__(self, port, requests):
        super().__init__(daemon=True)
        self.port, self.requests, self.answered, self.unanswered = port, requests, 0, 0

    def run(self):
        while self.answered + self.unanswered < self.requests:
            with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)) as connection:
                self._use(connection)

    def _use(self, connection):
        while self.answered + self.unanswered < self.requests:
            try:
                connection.request("GET", f"/post/{self.answered % 20}/", headers={"User-Agent": BROWSER})
                response = connection.getresponse()
                response.read()
            except (OSError, http.client.HTTPException):
                self.unanswered += 1
                time.sleep(0.02)
                return
            self.answered += response.status == 200


def wait_until(clients, answered):
    """Wait until so many pages were answered."""
    while sum(client.answered for client in clients) < answered and any(client.is_alive() for client in clients):
        time.sleep(0.005)


def kill_worker(parent):
    """Kill a process of the server, and return how many were killed."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    with contextlib.suppress(ProcessLookupError):
        os.kill(int(children[-1]), signal.SIGKILL)
        return 1
    return 0


def main(arguments):
    """Run it, print the figures and return the exit code."""
    from django.test import override_settings

    from tests.fixtures.process import Server
    from tests.fixtures.proxy import Proxy

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("requests", type=int)
    parser.add_argument("server", choices=SERVERS)
    parser.add_argument("--outage", type=float, default=0.0, help="seconds without Redis (default: 0)")
    parser.add_argument("--kills", type=int, default=0, help="processes that are killed (default: 0)")
    options = parser.parse_args(arguments)
    server, began = Server(tcp=True), time.monotonic()
    proxy = Proxy(server.port)
    try:
        kit = {"CONNECTIONS": {"default": server.connection}}
        with override_settings(REDIS_KIT=kit), tempfile.TemporaryDirectory() as folder:
            found = run(proxy, folder, options.requests, options.server, outage=options.outage, kills=options.kills)
    finally:
        proxy.stop()
        server.stop()
    print(f"{found.answered:,} pages answered, {found.unanswered:,} requests without an answer, {found.kills} kills")
    print(f"{found.views:,} views counted; {found.lost}; {time.monotonic() - began:.0f} s")
    missing = found.answered - found.views - sum(found.lost.values())
    print(f"{missing:,} not accounted for{': WRONG, ' + found.wrong if found.wrong else ''}")
    return int(bool(found.wrong))


if __name__ == "__main__":
    import django

    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    django.setup()
    sys.exit(main(sys.argv[1:]))
