"""Restarts the worker when its code changes, for development."""

import logging
import os
import sys
from pathlib import Path
from time import monotonic
from typing import NoReturn

from django.utils.autoreload import StatReloader, get_child_arguments

from redis_kit.core import embedded

logger = logging.getLogger("redis_kit.worker")
EVERY = 1.0  # seconds between two looks


class Files:
    """The files of the modules that this process has loaded, as they were at the first look."""

    def __init__(self) -> None:
        self._reloader = StatReloader()
        self._known = dict(self._reloader.snapshot_files())
        self._next = monotonic() + EVERY

    def changed(self) -> Path | None:
        """Return a file that has changed since, and can be compiled; looks once a second."""
        if monotonic() < self._next:
            return None
        self._next = monotonic() + EVERY
        now = dict(self._reloader.snapshot_files())
        changed = [path for path, time in now.items() if self._known.get(path, time) != time]
        self._known = now
        return next((path for path in changed if _compiles(path)), None)


def restart() -> NoReturn:
    """Become a new process under the same number, with the same arguments."""
    embedded.outlive_exec()
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, get_child_arguments())  # noqa: S606 -- runs itself


def _compiles(path: Path) -> bool:
    try:
        compile(path.read_bytes(), str(path), "exec")
    except (SyntaxError, ValueError, OSError):
        logger.exception("%s has changed, but can't be used yet.", path)
        return False
    return True
