"""Views that are lost when a web server ends, with the times of a real site and without anything in its code.

``python -m tests.chaos pageviews.shutdown 10`` starts each server 10 times, opens 30 pages one after another, and ends
it by a signal at once. It prints how many of the views Redis has.
"""

import signal
import tempfile
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from redis_kit.core import connections
from redis_kit.pageviews import PageViews
from tests.chaos.engine import program
from tests.chaos.engine.program import Outcome
from tests.chaos.engine.stage import stage
from tests.fixtures.process import free_port
from tests.pageviews.support.web_servers import Site, gunicorn, look, runserver, uvicorn

VIEWS = 30
SERVERS = {
    "uvicorn": lambda port: uvicorn(port, application="bare"),
    "uvicorn --workers 2": lambda port: uvicorn(port, "--workers", "2", application="bare"),
    "uvicorn, FlushAtShutdown": lambda port: uvicorn(port),
    "gunicorn": lambda port: gunicorn(port),
    "gunicorn gthread --preload": lambda port: gunicorn(port, "--worker-class", "gthread", "--preload"),
    "runserver --noreload": lambda port: runserver(port, "--noreload"),
    "runserver": lambda port: runserver(port),
}
SIGNALS = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True)
class Plan(program.Plan):
    """How often each server is started."""

    rounds: int


def counted(folder, command, number):
    """Return how many of the views of a server are counted that a signal ends."""
    connections.client().call("FLUSHDB")
    port = free_port()
    site = Site(Path(folder), zone=settings.TIME_ZONE, interval=1.0, quiet=0.05)
    server = site.start(port, command(port), settings.REDIS_KIT, own_interpreter=True)
    try:
        look(port, times=VIEWS)
        server.send_signal(number)
    finally:
        server.wait(60)
    return PageViews("front", on_failure="raise").views()


def run(plan):
    """Start and end each server; the figures say what was lost."""
    lines = [""]
    with stage():
        for name, command in SERVERS.items():
            for number in SIGNALS:
                with tempfile.TemporaryDirectory() as folder:
                    views = [counted(folder, command, number) for _ in range(plan.rounds)]
                complete = sum(one == VIEWS for one in views)
                least = f"{plan.rounds} rounds, least {min(views)}"
                lines.append(f"{name}, {number.name}: all {VIEWS} views in {complete} of {least}")
    return Outcome("\n".join(lines), {})
