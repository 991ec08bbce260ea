"""Restarts the worker when its code changes, for development.

As a program it is that of a restarted worker: it runs the worker's command, given as its arguments. If the change has
broken what the command loads, it waits for the next one.
"""

import logging
import os
import re
import runpy
import sys
from collections.abc import Callable
from itertools import takewhile
from math import inf
from pathlib import Path
from time import monotonic, time
from traceback import format_exc
from typing import NoReturn

from django.utils.autoreload import StatReloader, get_child_arguments

from redis_kit.core.embedded import server
from redis_kit.queues.worker.supervisor import os_signals
from redis_kit.queues.worker.supervisor.os_signals import Signals

logger = logging.getLogger("redis_kit.worker")
PROGRAM = f"{__package__}.autoreload"
EVERY = 1.0  # seconds between two looks
RESTARTED = "REDIS_KIT_RESTARTED"  # in the environment of a process that restart() has made: when it did so


class Files:
    """The files of the modules that this process has loaded, as they were at the last look.

    After a ``failure``, these are also the files beside those of its traceback: a module that failed is not among the
    loaded ones. New files, and those that were saved later than ``since``, then count as changed.
    """

    def __init__(self, failure: str = "", since: float = inf) -> None:
        self._reloader = StatReloader()
        self._has_failed = bool(failure)
        for name in re.findall(r'^ *File "([^"<>]+)", line ', failure, re.MULTILINE):
            self._reloader.watch_dir(Path(name).parent, "*.py")
        now = time()
        self._times = {path: 0.0 if since < saved < now else saved for path, saved in self._look().items()}

    def changed(self) -> Path | None:
        """Return a file that has changed since, and can be compiled."""
        now, before = self._look(), self._times
        self._times = {**before, **now}  # a file that was missing for a moment counts as changed when it exists
        changed = [path for path, time in now.items() if before.get(path, 0.0 if self._has_failed else time) != time]
        return next((path for path in changed if _compiles(path)), None)

    def _look(self) -> dict[Path, float]:
        return dict(self._reloader.snapshot_files())


class FileWatch:
    """The duty of ``--reload``: it looks at the files once a second. ``on_change`` is called with one that changed."""

    def __init__(self, on_change: Callable[[Path], object]) -> None:
        self.due = 0.0
        self._files, self._on_change = Files(), on_change

    def run(self) -> None:
        """Look at the files."""
        self.due = monotonic() + EVERY
        if path := self._files.changed():
            self._on_change(path)


def note_loaded() -> None:
    """Note that the command has loaded its code. From now on, an error ends it."""
    os.environ.pop(RESTARTED, None)  # tasks start processes of their own


def wait_for_change(since: float) -> NoReturn:
    """Log why the code can't be loaded, and restart when a file has changed; end if a signal to stop comes first."""
    failure = format_exc()
    files = Files(failure, since)
    with Signals(lambda: None) as signals:
        logger.error("The code can't be loaded; the worker waits for the next change.\n%s", failure)
        signals.tick_every(EVERY)
        path = files.changed()
        while not path and not any(number in (*os_signals.STOP, os_signals.NOW) for number in signals.taken()):
            os_signals.readable([signals], EVERY)
            path = files.changed()
    if path and not signals.stopped:
        logger.warning("%s has changed.", path)
        restart()
    logger.warning("Stopped.")
    raise SystemExit(0) from None


def restart() -> NoReturn:
    """Become a new process under the same number, with the same arguments."""
    server.outlive_exec()
    os.environ[RESTARTED] = str(time())
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, _arguments())  # noqa: S606 -- runs itself


def _arguments() -> list[str]:
    """Return the arguments of this process, by way of the program that waits while settings are broken."""
    arguments = [str(argument) for argument in get_child_arguments()]
    if PROGRAM in arguments:
        return arguments
    options = list(takewhile(lambda argument: argument.startswith("-") and argument != "-m", arguments[1:]))
    return [arguments[0], *options, "-m", PROGRAM, *arguments[1 + len(options) :]]


def _compiles(path: Path) -> bool:
    try:
        compile(path.read_bytes(), str(path), "exec")
    except (SyntaxError, ValueError, OSError):
        logger.exception("%s has changed, but can't be used yet.", path)
        return False
    return True


def main() -> None:
    """Run the command of a restarted worker."""
    arguments = sys.argv
    try:
        _run_program(arguments[1:])
    except (Exception, SystemExit):
        restarted = os.environ.pop(RESTARTED, None)
        if restarted is None:  # the worker had begun
            raise
        sys.argv = arguments
        wait_for_change(float(restarted))


def _run_program(program: list[str]) -> None:
    if program[0] == "-m":
        sys.argv = program[1:]
        runpy.run_module(program[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = program
        if not sys.flags.safe_path:
            sys.path[0] = str(Path(program[0]).resolve().parent)
        runpy.run_path(program[0], run_name="__main__")


if __name__ == "__main__":
    main()
