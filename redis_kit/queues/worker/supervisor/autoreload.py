"""Restarts the worker when its code changes, for development.

As a program it is that of a restarted worker: it runs the worker's command, given as its arguments. If another change
breaks the settings before the command begins, it waits for the next one.
"""

import logging
import os
import re
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from time import monotonic
from typing import NoReturn

from django.utils.autoreload import StatReloader, get_child_arguments

from redis_kit.core.embedded import server
from redis_kit.queues.worker.supervisor import os_signals
from redis_kit.queues.worker.supervisor.os_signals import Signals

logger = logging.getLogger("redis_kit.worker")
PROGRAM = f"{__package__}.autoreload"
EVERY = 1.0  # seconds between two looks
TRIAL = "REDIS_KIT_TRIAL"  # in the environment of a process that is only to load the code and the settings
RESTARTED = "REDIS_KIT_RESTARTED"  # in the environment of a process that restart() has made


class Files:
    """The files of the modules that this process has loaded, and those of errors, as they were at the last look."""

    def __init__(self) -> None:
        self._reloader = StatReloader()
        self._times = self._look()

    def changed(self) -> Path | None:
        """Return a file that has changed since, and can be compiled."""
        now, before = self._look(), self._times
        self._times = {**before, **now}  # a file that was missing for a moment counts as changed when it exists
        changed = [path for path, time in now.items() if before.get(path, time) != time]
        return next((path for path in changed if _compiles(path)), None)

    def watch(self, text: str) -> None:
        """Look at the files that a traceback names, too: a module that failed is not among the loaded ones."""
        named = re.findall(r'^ *File "([^"<>]+)", line ', text, re.MULTILINE)
        self._reloader.extra_files |= {Path(name).resolve() for name in named}
        self._times = {**self._look(), **self._times}

    def _look(self) -> dict[Path, float]:
        return dict(self._reloader.snapshot_files())


class FileWatch:
    """The duty of ``--reload``: it looks at the files once a second. ``on_change`` is called with one that changed."""

    def __init__(self, files: Files, on_change: Callable[[Path], object]) -> None:
        self.due = 0.0
        self._files, self._on_change = files, on_change

    def run(self) -> None:
        """Look at the files."""
        self.due = monotonic() + EVERY
        if path := self._files.changed():
            self._on_change(path)


def usable(files: Files, signals: Signals) -> bool:
    """Wait until another process can load the code; False where a signal to stop ends the waiting."""
    trial = Trial()
    watch_at = monotonic() + EVERY
    try:
        while not trial.passed:
            os_signals.readable([signals], 0.05)
            if any(number in (*os_signals.STOP, os_signals.NOW) for number in signals.taken()):
                return False
            if failure := trial.failure():
                files.watch(failure)
                logger.error("The code can't be loaded; the worker waits for the next change.\n%s", failure)
            if monotonic() < watch_at:
                continue
            watch_at = monotonic() + EVERY
            if path := files.changed():
                logger.warning("%s has changed.", path)
                trial.end()
                trial = Trial()
    finally:
        trial.end()
    return True


class Trial:
    """A process with the arguments of this one that ends when it has loaded the code and the settings."""

    def __init__(self) -> None:
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 -- end() closes it
        self._process = subprocess.Popen(  # noqa: S603 -- runs itself
            _arguments(), env={**os.environ, TRIAL: "1"}, stdin=subprocess.DEVNULL, stderr=self._said
        )
        self._reported = False

    @property
    def passed(self) -> bool:
        """Tell whether it has ended well."""
        return self._process.poll() == 0

    def failure(self) -> str:
        """Return, once, what it wrote when it failed; "" otherwise."""
        if self._reported or not self._process.poll():
            return ""
        self._reported = True
        self._said.seek(0)
        return self._said.read().decode(errors="replace").strip() or f"Exit code {self._process.returncode}."

    def end(self) -> None:
        """Kill it where it still runs."""
        self._process.kill()
        self._process.wait()
        self._said.close()


@contextmanager
def recovering(*, restarted: bool) -> Iterator[None]:
    """Load code in the block. If a restarted process can't, because of a later change, it waits for the next one."""
    try:
        yield
    except Exception:
        if not restarted:
            raise
        wait_for_change()


def wait_for_change() -> NoReturn:
    """Wait until the code can be loaded, and restart; end if a signal to stop comes first."""
    with Signals(lambda: None) as signals:
        again = usable(Files(), signals)
    if again and not signals.stopped:
        restart()
    logger.warning("Stopped.")
    raise SystemExit(0) from None


def restart() -> NoReturn:
    """Become a new process under the same number, with the same arguments."""
    server.outlive_exec()
    os.environ[RESTARTED] = "1"
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
        if os.environ.pop(RESTARTED, None) is None:  # the command has begun, or is only tried
            raise
        sys.argv = arguments
        wait_for_change()


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
