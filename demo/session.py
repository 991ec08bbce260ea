"""A session of the demo: a server, the site and a worker, from their start to their end."""

import contextlib
import fcntl
import http.client
import os
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from shlex import quote

from django.conf import settings
from django.db import connections
from django.test.utils import override_settings

from demo.console import say
from demo.process import ChildProcess, Failed
from redis_kit.core.embedded.server import URL_VARIABLE, EmbeddedServer, EmbeddedUnavailable

ROOT = Path(__file__).resolve().parents[1]
USUAL_PORT = 8000
FIRST_PAGE = 30.0  # seconds until the site must have answered
GRACE = 2.0  # seconds in which the site and the worker may end by themselves
DATABASE_VARIABLE = "READING_DATABASE"
WORKER = ("--grace", "1")


class Session:
    """The address of the site, and the processes that run."""

    def __init__(self, port: int, server: EmbeddedServer) -> None:
        self.port, self.server = port, server
        self.children: list[ChildProcess] = []
        self.is_new = False  # whether this is the first session with these data

    def start(self, name: str, *command: str) -> None:
        """Start one of the processes."""
        # In the server's folder, so that one guard removes everything.
        self.children.append(ChildProcess(name, [sys.executable, *command], folder=self.server.folder / name))

    @property
    def url(self) -> str:
        """The address of the site."""
        return f"http://127.0.0.1:{self.port}/"

    def check(self) -> None:
        """Raise Failed if the server, the site or the worker has ended."""
        try:
            os.kill(self.server.pid or 0, 0)
        except ProcessLookupError:
            raise Failed("The server has ended.") from None
        for child in self.children:
            child.check()

    def wait_for_first_page(self) -> None:
        """Wait until the site answers. Raises Failed if it does not, or answers with an error."""
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
        deadline = time.monotonic() + GRACE
        for child in self.children:
            child.terminate()
        for child in self.children:
            child.end(deadline=deadline)


@contextlib.contextmanager
def running(*, port: int | None, keep: bool) -> Iterator[Session]:
    """Run everything for the length of the block.

    With ``keep`` the data are stored beside the project's database and used again next time; otherwise they are
    temporary. Raises Failed if something can't start.
    """
    with contextlib.ExitStack() as stack:
        home = stack.enter_context(kept_home()) if keep else None
        try:
            server = stack.enter_context(EmbeddedServer(persistence=True, data_dir=home and home / "redis"))
        except EmbeddedUnavailable as error:
            raise Failed(str(error)) from error
        use(server, (home or server.folder) / "reading.sqlite3")
        session = Session(free_port() if port is None else port, server)
        stack.callback(session.end)
        session.start("site", str(ROOT / "demo/site_server.py"), str(session.port))
        # The site takes a second to load. Its data are prepared at the same time; nobody knows its port yet.
        from demo import seed

        patient = {**settings.REDIS_KIT, "CONNECT_TIMEOUT": 10.0, "READ_TIMEOUT": 10.0}  # the machine is busy with it
        with override_settings(REDIS_KIT=patient):
            session.is_new = seed.prepare()
        session.wait_for_first_page()
        session.start("worker", str(ROOT / "manage.py"), "rk_worker", *WORKER)
        yield session


def use(server: EmbeddedServer, database: Path) -> None:
    """Point this process and its children to a server and a database."""
    os.environ[URL_VARIABLE] = server.url
    os.environ[DATABASE_VARIABLE] = connections.databases["default"]["NAME"] = str(database)


def exports() -> str:
    """Return the line that points the commands of another shell to the server and the database in use."""
    return "export " + " ".join(f"{name}={quote(os.environ[name])}" for name in (URL_VARIABLE, DATABASE_VARIABLE))


@contextlib.contextmanager
def kept_home() -> Iterator[Path | None]:
    """Lock the folder of the project's database for this session; None if another session has it."""
    home = Path(settings.DATABASES["default"]["NAME"]).parent
    home.mkdir(parents=True, exist_ok=True)
    with (home / "rk_demo.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            say("Another session uses the stored data, so the data of this one are temporary.")
            yield None
        else:
            yield home


def free_port() -> int:
    """Return a free loopback port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_free(port: int) -> bool:
    """Return whether a loopback port is free."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def answer(port: int) -> int | None:
    """Return the status of the first page; None while nothing listens."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", "/", headers={"User-Agent": "rk_demo (bot)"})
        return connection.getresponse().status
    except OSError:
        return None
    finally:
        connection.close()
