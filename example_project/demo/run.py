"""One run of the demonstration: a server, the site and a worker, from the first to the last moment."""

import contextlib
import fcntl
import http.client
import os
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from django.db import connections

from example_project.demo.child import Child, Failed
from example_project.demo.console import say
from redis_kit.core.embedded.server import URL_VARIABLE, EmbeddedServer, EmbeddedUnavailable

ROOT = Path(__file__).resolve().parents[2]
USUAL_PORT = 8000
FIRST_PAGE = 30.0  # seconds until the site must have answered
GOODBYE = 2.0  # seconds for the site and the worker to end by themselves
WORKER = ("--grace", "1")


class Run:
    """What runs: where the site is, and its processes."""

    def __init__(self, port: int, server: EmbeddedServer) -> None:
        self.port, self.server = port, server
        self.children: list[Child] = []

    def start(self, name: str, *command: str) -> None:
        """Start one of the processes."""
        # In the server's folder, so that one guard removes everything in any case.
        self.children.append(Child(name, [sys.executable, *command], folder=self.server.folder / name))

    @property
    def url(self) -> str:
        """The address of the site."""
        return f"http://127.0.0.1:{self.port}/"

    def check(self) -> None:
        """Raise Failed when the server, the site or the worker has ended."""
        try:
            os.kill(self.server.pid or 0, 0)
        except ProcessLookupError:
            raise Failed("The server has ended.") from None
        for child in self.children:
            child.check()

    def wait_for_first_page(self) -> None:
        """Return when the site answers. Raises Failed when it does not, or answers with an error."""
        deadline = time.monotonic() + FIRST_PAGE
        while (status := answer(self.port)) is None:
            self.check()
            if time.monotonic() > deadline:
                raise Failed(f"The site has not answered within {FIRST_PAGE:g} s.")
            time.sleep(0.02)
        if status != 200:
            raise Failed(f"The first page was answered with {status}.")

    def end(self) -> None:
        """End the processes."""
        deadline = time.monotonic() + GOODBYE
        for child in self.children:
            child.terminate()
        for child in self.children:
            child.end(deadline=deadline)


@contextlib.contextmanager
def running(*, port: int | None, keep: bool) -> Iterator[Run]:
    """Run everything while the block does.

    With ``keep`` the data lie beside the project's database and are there again next time; otherwise they are
    temporary. Raises Failed with the reason when something cannot start.
    """
    with contextlib.ExitStack() as stack:
        home = stack.enter_context(kept_home()) if keep else None
        try:
            server = stack.enter_context(EmbeddedServer(persistence=True, data_dir=home and home / "redis"))
        except EmbeddedUnavailable as error:
            raise Failed(str(error)) from error
        use(server, (home or server.folder) / "reading.sqlite3")
        run = Run(free_port() if port is None else port, server)
        stack.callback(run.end)
        run.start("site", str(ROOT / "example_project/demo/serve.py"), str(run.port))
        # The site takes a second to load. Meanwhile its data are made ready; nobody knows of its port yet.
        from example_project.demo import seed

        seed.prepare()
        run.wait_for_first_page()
        run.start("worker", str(ROOT / "manage.py"), "rk_worker", *WORKER)
        yield run


def use(server: EmbeddedServer, database: Path) -> None:
    """Point this process, and those that it starts, to a server and a database."""
    os.environ[URL_VARIABLE] = server.url
    os.environ["READING_DATABASE"] = connections.databases["default"]["NAME"] = str(database)


@contextlib.contextmanager
def kept_home() -> Iterator[Path | None]:
    """Hold the folder of the project's database for this run alone; None where another run holds it."""
    home = Path(settings.DATABASES["default"]["NAME"]).parent
    home.mkdir(parents=True, exist_ok=True)
    with (home / "rk_demo.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            say("Another run uses the data that are kept, so those of this one are temporary.")
            yield None
        else:
            yield home


def free_port() -> int:
    """Return a loopback port that nobody uses."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def is_free(port: int) -> bool:
    """Tell whether a loopback port can be served on."""
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def answer(port: int) -> int | None:
    """Return the status of the first page; None while nobody listens."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", "/", headers={"User-Agent": "rk_demo (bot)"})
        return connection.getresponse().status
    except OSError:
        return None
    finally:
        connection.close()
