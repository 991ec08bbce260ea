"""Who holds something: how that is stored beside a lease, and read again."""

import asyncio
import logging
import os
import socket
import threading
from functools import lru_cache
from typing import Any, NamedTuple

from django.utils.module_loading import import_string

from redis_kit.core import conf
from redis_kit.core.activity import doing as doing_now
from redis_kit.locks.holders.call_site import location
from redis_kit.locks.settings import LockSettings

logger = logging.getLogger("redis_kit.locks")

NAME, WORK = 80, 200  # characters kept of a thread's or task's name, and of what it works on
RESERVED = b"~"  # a lock kept for a moment for the waiter that was woken


class Holder(NamedTuple):
    """A thread or task of a process: ``location`` is where it took the lease, ``doing`` what it works on, or "".

    All of it is what that process said of itself.
    """

    host: str = "?"
    pid: int = 0
    thread: str = "?"
    location: str = ""
    doing: str = ""

    @classmethod
    def parse(cls, stored: bytes) -> "Holder":
        """Return what who() gave in another process. Takes anything."""
        host, pid, thread, location, doing = (stored.decode(errors="replace").split("\t", 4) + [""] * 4)[:5]
        return cls(host or "?", int(pid[:10]) if pid.isascii() and pid.isdigit() else 0, thread or "?", location, doing)

    @property
    def place(self) -> str:
        """Return host, process and thread or task in words."""
        return f"{self.host}, process {self.pid}, {self.thread}"

    @property
    def text(self) -> str:
        """Return all that is known in words."""
        at = f", at {self.location}" if self.location else ""
        return f"{self.place}{at}{f', working on {self.doing}' if self.doing else ''}"


class Holding(NamedTuple):
    """A lease as it is stored: when it began, ms on the server's clock, and its length in ms."""

    fence: int
    since: int
    ttl: int
    weight: int
    holder: Holder


def of_lock(stored: bytes | None) -> tuple[str, Holding] | None:
    """Return token and lease of a lock's stored holder; None where nobody holds it, or where it can't be read."""
    if not stored or stored.startswith(RESERVED):
        return None
    parts = stored.split(b" ", 4)
    if len(parts) != 5 or not all(part.isdigit() for part in parts[1:4]):
        return None
    token, fence, since, ttl, who = parts
    return token.decode(errors="replace"), Holding(int(fence), int(since), int(ttl), 1, Holder.parse(who))


def of_slot(stored: bytes | None) -> Holding:
    """Return the lease of a slot from what is stored about it; with an unknown holder where that can't be read."""
    parts = (stored or b"").split(b" ", 4)
    if len(parts) != 5 or not all(part.isdigit() for part in parts[:4]):
        return Holding(0, 0, 0, 1, Holder())
    fence, since, ttl, weight, who = parts
    return Holding(int(fence), int(since), int(ttl), int(weight), Holder.parse(who))


def who(doing: str = "", *, ahead: int = 0) -> bytes:
    """Return the caller as bytes for others to read: host, process, thread or task, place in the code, its work.

    What it works on is ``doing``, else what a worker says of its job, else what the function named by
    ``REDIS_KIT["LOCKS"]["HOLDER"]`` answers. The next ``ahead`` callers are not looked at. No round trip.
    """
    work = doing or doing_now.get() or _answer()
    loop = asyncio._get_running_loop()
    task = asyncio.current_task(loop) if loop else None
    name = task.get_name() if task else threading.current_thread().name
    text = f"{_clean(name[:NAME])}\t{location(2 + ahead)}\t{_clean(work[:WORK])}"
    return _process + text.encode(errors="replace")


def _clean(text: str) -> str:
    return text if text.isprintable() else "".join(one if one.isprintable() else " " for one in text)


def _answer() -> str:
    path = conf.section(LockSettings).HOLDER
    if not path:
        return ""
    try:
        return str(_function(path)() or "")
    except Exception:
        # To know who holds a lock is worth less than to get it.
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
