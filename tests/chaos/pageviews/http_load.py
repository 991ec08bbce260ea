"""Page views under real HTTP: each answered page is counted, or dropped and counted as that.

``python -m tests.chaos pageviews.http_load 20000 gunicorn --outage 2`` opens 20,000 pages of a site with two processes.
During two seconds of that Redis can't be reached, and the buffers hold 200 views. ``--kills 5`` kills five processes:
each may lose the views that waited in it. No other view may be lost, and none be counted twice.
"""

import contextlib
import http.client
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from redis_kit.pageviews import PageViews
from tests.chaos.engine import faults, program
from tests.chaos.engine.program import Outcome, option
from tests.chaos.engine.stage import stage
from tests.fixtures.process import free_port
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


@dataclass(frozen=True)
class Plan(program.Plan):
    """How many pages are opened of which server."""

    requests: int
    server: str = option("gunicorn", "which server", choices=SERVERS)
    outage: float = option(0.0, "seconds without Redis")
    kills: int = option(0, "processes that are killed")


def run(plan):
    """Open pages of one kind of server; then compare."""
    with stage() as place:
        port, proxy = free_port(), place.proxy()
        site = Site(place.folder, zone=settings.TIME_ZONE, interval=0.2, capacity=CAPACITY)
        kit = {**place.kit, "CONNECTIONS": {"default": proxy.connection}}
        server = site.start(port, SERVERS[plan.server](port), kit, own_interpreter=True)
        clients = [Client(port, plan.requests // CLIENTS) for _ in range(CLIENTS)]
        try:
            for client in clients:
                client.start()
            if plan.outage:
                wait_until(clients, plan.requests // 4)
                with proxy.fault("refuse"):
                    time.sleep(plan.outage)
            for number in range(plan.kills):
                wait_until(clients, plan.requests * (number + 1) // (plan.kills + 1))
                kill_worker(server.pid)
            for client in clients:
                client.join(300)
        finally:
            server.terminate()
            server.wait(60)
        views, lost = PageViews.site(on_failure="raise").views(), site.lost()
    answered, unanswered = sum(each.answered for each in clients), sum(each.unanswered for each in clients)
    known = views + sum(lost.values())
    least = answered - plan.kills * (BATCH + CAPACITY)
    found = {
        "doubled": [f"{known - answered} views too many"] if known > answered + unanswered else [],
        "lost": [f"{answered - known} views are missing"] if known < least else [],
    }
    figures = f"{answered:,} pages answered, {unanswered:,} requests without an answer; {views:,} views counted; {lost}"
    return Outcome(
        f"{figures}; {answered - known:,} not accounted for", found, answered=answered, views=views, lost=lost
    )


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
    """Kill a process of the server."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    faults.kill(int(children[-1]))
