"""Reads the schedules of the database, in a process of its own: a database that hangs must not stop heartbeats."""

import contextlib
import logging
import os
import signal
import sys
from collections.abc import Callable

from django.db import connections as databases

from redis_kit.core.errors import RedisFailure
from redis_kit.core.logs.error_text import text_of
from redis_kit.queues.worker.shared.reconnect import UNAVAILABLE
from redis_kit.queues.worker.supervisor.os_signals import held_back

logger = logging.getLogger("redis_kit.worker")
LONGEST = 30  # seconds, after which the system ends it
LONGEST_ERROR = 300  # characters


class Loader:
    """Starts the process, one at a time. ``in_child`` frees it of what only the supervisor needs."""

    def __init__(self, in_child: Callable[[], None]) -> None:
        self._in_child = in_child
        self._pid = 0

    def start(self) -> None:
        """Start it, unless one is at work."""
        if self._pid:
            return
        databases.close_all()
        sys.stdout.flush()
        sys.stderr.flush()
        with held_back():
            pid = os.fork()
            if not pid:
                with contextlib.suppress(BaseException):
                    self._in_child()
                    signal.alarm(LONGEST)
        if pid:
            self._pid = pid
        else:
            load()

    def reap(self) -> None:
        """Take note of its end."""
        if self._pid:
            with contextlib.suppress(ChildProcessError):
                if not os.waitpid(self._pid, os.WNOHANG)[0]:
                    return
            self._pid = 0

    def close(self) -> None:
        """End it."""
        if self._pid:
            with contextlib.suppress(OSError):
                os.kill(self._pid, signal.SIGKILL)
                os.waitpid(self._pid, 0)
            self._pid = 0


def load() -> None:
    """Store the rows in Redis, and end the process."""
    try:
        from redis_kit.queues.tasks.schedules import rows

        rows.store_all()
    except UNAVAILABLE:
        pass  # the supervisor says so, and has them read again
    except RedisFailure as error:
        logger.warning("The schedules of the database can't be stored in Redis: %s", text_of(error)[:LONGEST_ERROR])
    except BaseException as error:
        logger.warning("The schedules of the database can't be read: %s", text_of(error)[:LONGEST_ERROR])
    finally:
        with contextlib.suppress(BaseException):
            databases.close_all()
        os._exit(0)
