"""The holder of a lease: how it is stored beside the lease, and how it is read."""

import asyncio
import logging
import os
import socket
import sys
import sysconfig
import threading
from functools import cache, lru_cache
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import asgiref
from django.utils.module_loading import import_string

from redis_kit.core import activity, conf
from redis_kit.locks.settings import LockSettings

logger = logging.getLogger("redis_kit.locks")

MAX_NAME, MAX_DOING = 80, 200  # characters stored of a thread's or task's name, and of what it works on
RESERVED = b"~"  # a lock that is reserved for the waiter that was woken
WAITED_FOR = b"+"  # at the end of what is stored of a holder: callers may wait for it
MAX_PATH = 120  # characters; the end of a path says more than its beginning
MAX_FRAMES = 60
MAX_WRAPPERS = 5  # around a decorated function, by other decorators

_DECORATORS = {str(Path(__file__).parents[1] / "decorators" / name) for name in ("locked.py", "single_instance.py")}
_IS_DECORATOR = "@"
_PACKAGES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_SKIPPED = tuple(
    f"{folder}{os.sep}"
    for folder in (
        Path(__file__).parents[2],
        Path(asgiref.__file__).parent,
        sysconfig.get_path("stdlib"),
        sysconfig.get_path("platstdlib"),
    )
)


class Holder(NamedTuple):
    """A thread or task of a process. ``location`` is where it acquired the lease, ``doing`` what it works on, or "".

    All fields are the process's own words.
    """

    host: str = "?"
    pid: int = 0
    thread: str = "?"
    location: str = ""
    doing: str = ""

    @classmethod
    def parse(cls, stored: bytes) -> "Holder":
        """Return the holder that describe_caller() described in another process. Accepts any bytes."""
        host, pid, thread, location, doing = (stored.decode(errors="replace").split("\t", 4) + [""] * 4)[:5]
        return cls(host or "?", int(pid[:10]) if pid.isascii() and pid.isdigit() else 0, thread or "?", location, doing)

    @property
    def process_text(self) -> str:
        """Return host, process id and thread or task."""
        return f"{self.host}, pid {self.pid}, {self.thread}"

    @property
    def text(self) -> str:
        """Return all fields in words."""
        at = f", at {self.location}" if self.location else ""
        return f"{self.process_text}{at}{f', working on {self.doing}' if self.doing else ''}"


class StoredLease(NamedTuple):
    """A lease as it is stored. Its fence tells when it began, in microseconds on the server's clock.

    ``limits`` are those under which it took slots, the outermost first.
    """

    fence: int
    ttl_ms: int
    weight: int
    holder: Holder
    limits: tuple[int, ...] = ()


def parse_lock(stored: bytes | None) -> tuple[str, StoredLease] | None:
    """Return token and lease of a lock's stored holder; None if nobody holds it, or if it can't be read."""
    if not stored or stored.startswith(RESERVED):
        return None
    named, _, lease = stored.removesuffix(WAITED_FOR).partition(b"\n")
    parts = lease.split(b" ")
    if len(parts) != 3 or not all(part.isdigit() for part in parts):
        return None
    token, _, caller = named.partition(b" ")
    seconds, micros, ttl_ms = map(int, parts)
    return token.decode(errors="replace"), StoredLease(_fence(seconds, micros), ttl_ms, 1, Holder.parse(caller))


def parse_slot(stored: bytes | None) -> StoredLease:
    """Return the stored lease of a slot; with an unknown holder if it can't be read."""
    parts = (stored or b"").split(b" ", 5)
    limits = parts[2].split(b",") if len(parts) == 6 else []
    if not limits or not all(part.isdigit() for part in (*parts[:2], *limits, *parts[3:5])):
        return StoredLease(0, 0, 1, Holder())
    seconds, micros, weight, ttl_ms = (int(parts[at]) for at in (0, 1, 3, 4))
    return StoredLease(_fence(seconds, micros), ttl_ms, weight, Holder.parse(parts[5]), tuple(map(int, limits)))


def _fence(seconds: int, micros: int) -> int:
    return seconds * 1_000_000 + micros


def describe_caller(*, ahead: int = 0) -> bytes:
    """Return the caller as bytes for others to read: host, process, thread or task, location in the code, its work.

    Its work is the job that a worker runs, else the answer of the function named by
    ``REDIS_KIT["LOCKS"]["HOLDER"]``. The next ``ahead`` frames of the stack are skipped. No round trip.
    """
    doing = activity.current.get().work or _configured_doing()
    loop = asyncio._get_running_loop()
    task = asyncio.current_task(loop) if loop else None
    name = task.get_name() if task else threading.current_thread().name
    text = f"{_clean(name[:MAX_NAME])}\t{location(2 + ahead)}\t{_clean(doing[:MAX_DOING])}"
    return _process + text.encode(errors="replace")


def _clean(text: str) -> str:
    return text if text.isprintable() else "".join(character if character.isprintable() else " " for character in text)


def _configured_doing() -> str:
    path = conf.section(LockSettings).HOLDER
    if not path:
        return ""
    try:
        return str(_function(path)() or "")
    except Exception:
        # A lock without a description of its holder is better than no lock.
        logger.exception("REDIS_KIT['LOCKS']['HOLDER'], %s, failed.", path)
        return ""


@lru_cache(maxsize=8)
def _function(path: str) -> Any:
    return import_string(path)


def _this_process() -> bytes:
    return f"{_clean(socket.gethostname())}\t{os.getpid()}\t".encode(errors="replace")


def _after_fork() -> None:
    global _process
    _process = _this_process()


_process = _this_process()
os.register_at_fork(after_in_child=_after_fork)


def location(above: int = 1) -> str:
    """Return ``shop/views.py:12``: the nearest caller outside of the kit and of Python's library, or "".

    The search begins ``above`` frames up, at the caller by default; each frame costs about 0.15 µs.
    """
    frame: FrameType | None = sys._getframe(above)
    for _ in range(MAX_FRAMES):
        if frame is None:
            break
        path = _shown(frame.f_code.co_filename)
        if path:
            line = f"{path}:{frame.f_lineno}" if path != _IS_DECORATOR else _decorated(frame)
            if line:
                return line
        frame = frame.f_back
    return ""


def _decorated(frame: FrameType) -> str:
    # The caller of a decorated function, such as Django's request handler, says less than the function itself.
    function: Any = frame.f_locals.get("function")
    for _ in range(MAX_WRAPPERS):
        function = getattr(function, "__wrapped__", function)
    code: Any = getattr(function, "__code__", None)
    path = _shown(code.co_filename) if code else ""
    return f"{path}:{code.co_firstlineno}" if path else ""


@cache
def _shown(file: str) -> str:
    """Return how a file is shown; "" if it is skipped."""
    if file in _DECORATORS:
        return _IS_DECORATOR
    if file.startswith("<frozen"):
        return ""
    inside = max((part for part in _PACKAGES if part in file), key=file.rfind, default="")
    if file.startswith(_SKIPPED[:2]) or (file.startswith(_SKIPPED[2:]) and not inside):
        return ""
    path = _relative(file).replace("\t", " ")
    return path if len(path) <= MAX_PATH else f"…{path[1 - MAX_PATH :]}"


def _relative(file: str) -> str:
    roots = [root for path in sys.path if file.startswith(root := _folder(path))]
    return file.removeprefix(max(roots, key=len, default=""))


@lru_cache(maxsize=64)
def _folder(path: str) -> str:
    return os.path.join(os.path.abspath(path), "")  # noqa: PTH100, PTH118  # as names of code objects are made
