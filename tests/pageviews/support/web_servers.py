"""A site under real web servers: the files of its project, and the commands that serve it."""

import contextlib
import http.client
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.fork_server import PythonProcess, start_python
from tests.fixtures.servers import wait_for
from tests.pageviews.urls import BROWSER

ROOT = Path(__file__).parents[3]

SETTINGS = """
import json, os
from tests.settings import *
REDIS_KIT = json.loads(os.environ["REDIS_KIT"])
ROOT_URLCONF = "tests.pageviews.urls"
MIDDLEWARE = ["redis_kit.pageviews.middleware.PageViewMiddleware", "tests.pageviews.urls.signed_in_as"]
ALLOWED_HOSTS = ["*"]
TIME_ZONE = {zone!r}
"""
# Each process writes at its end how many views it dropped. Exit functions run in reverse order, so this comes after the
# last flush if the process had not imported the buffer before: start() it with ``own_interpreter``.
APPLICATIONS = """
import atexit, json, os
from pathlib import Path

def note():
    from redis_kit.pageviews.buffer import buffer
    lost = {{**buffer.dropped()._asdict(), "waiting": buffer.waiting}}
    Path({folder!r}, f"dropped.{{os.getpid()}}").write_text(json.dumps(lost))

atexit.register(note)

from django.core.asgi import get_asgi_application
from django.core.wsgi import get_wsgi_application
from redis_kit.pageviews.asgi import FlushAtShutdown
from redis_kit.pageviews.buffer import Buffer

Buffer.INTERVAL, Buffer.QUIET, Buffer.CAPACITY = {interval}, {quiet}, {capacity}
bare = get_asgi_application()
wsgi = get_wsgi_application()
flushing = FlushAtShutdown(bare)

async def application(scope, receive, send):
    await flushing(scope, receive, send)
    if scope["type"] == "lifespan":
        note()
"""


def gunicorn(port: int, *options: str) -> tuple[str, ...]:
    """Return the command of gunicorn with two workers."""
    pytest.importorskip("gunicorn")
    return ("-m", "gunicorn", "application:wsgi", "--bind", f"127.0.0.1:{port}", "--workers", "2", *options)


def uvicorn(port: int, *options: str, application: str = "application") -> tuple[str, ...]:
    """Return the command of uvicorn."""
    pytest.importorskip("uvicorn")
    return ("-m", "uvicorn", f"application:{application}", "--port", str(port), *options)


def runserver(port: int, *options: str) -> tuple[str, ...]:
    """Return the command of Django's own server."""
    return ("-m", "django", "runserver", f"127.0.0.1:{port}", "--skip-checks", *options)


class Site:
    """The files of a project in a folder. By itself a process sends nothing before its end, unless told otherwise."""

    def __init__(
        self, folder: Path, *, zone: str, interval: float = 600.0, quiet: float = 600.0, capacity: int = 10_000
    ) -> None:
        self.folder, self.output = folder, folder / "output"
        (folder / "site_settings.py").write_text(SETTINGS.format(zone=zone))
        applications = APPLICATIONS.format(folder=str(folder), interval=interval, quiet=quiet, capacity=capacity)
        (folder / "application.py").write_text(applications)

    def start(
        self, port: int, command: tuple[str, ...], redis_kit: dict[str, Any], *, own_interpreter: bool = False
    ) -> PythonProcess | subprocess.Popen[bytes]:
        """Start a server, and return its process when it has answered."""
        environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "site_settings",
            "PYTHONPATH": os.pathsep.join([str(self.folder), str(ROOT)]),
            "REDIS_KIT": json.dumps(redis_kit),
        }
        with self.output.open("ab") as output:
            process = (
                subprocess.Popen([sys.executable, *command], cwd=ROOT, env=environment, stdout=output, stderr=output)
                if own_interpreter
                else start_python(command, env=environment, stdout=output, stderr=output)
            )
        wait_for(lambda: process.poll() is not None or answers(port), timeout=60)
        assert process.poll() is None, self.output.read_text()
        return process

    def lost(self) -> dict[str, int]:
        """Return the views that the processes dropped, and those that waited at their end, by reason.

        Needs ``own_interpreter``.
        """
        notes = [json.loads(path.read_text()) for path in self.folder.glob("dropped.*")]
        return {name: sum(note[name] for note in notes) for name in notes[0]} if notes else {}


def answers(port: int) -> bool:
    """Return whether a server answers."""
    with contextlib.suppress(OSError), contextlib.closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
        connection.request("GET", "/nowhere/")
        return connection.getresponse().status == 404
    return False


def look(port: int, *, times: int) -> None:
    """Open a page some times."""
    for _ in range(times):
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
            connection.request("GET", "/named/", headers={"User-Agent": BROWSER})
            assert connection.getresponse().status == 200
