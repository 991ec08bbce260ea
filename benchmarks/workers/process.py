"""Processes of a benchmark: each is ended by its own id, and by itself where nobody is left to do it."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIFE = 300  # seconds after which a process ends in any case
GRACE = 5.0
END_WITH_PARENT = 1  # PR_SET_PDEATHSIG of <linux/prctl.h>


def environment(python: str, **more: str) -> dict[str, str]:
    """Return the environment of a process of a benchmark; programs of its interpreter are found first."""
    path = f"{Path(python).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return {**os.environ, "PYTHONPATH": str(ROOT), "PATH": path, "PYTHONWARNINGS": "ignore", **more}


@contextlib.contextmanager
def running(commands: Sequence[Sequence[str]], *, env: Mapping[str, str], log: Path) -> Iterator[list[int]]:
    """Run these commands for the length of the block; their words go to a file. Gives their process ids."""
    started: list[subprocess.Popen[bytes]] = []
    try:
        for command in commands:
            started.append(_started(command, env, log))
        yield [process.pid for process in started]
    finally:
        for process in started:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
        for process in started:
            _end(process)


def _started(command: Sequence[str], env: Mapping[str, str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("ab") as output:
        return subprocess.Popen(
            command,
            env=env,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,  # a group of its own, so that what it started ends with it
            preexec_fn=_bound,
        )


def _bound() -> None:
    """Have the process end with the benchmark, even with one that was killed; where the system can't do that, later."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(END_WITH_PARENT, signal.SIGTERM)
    signal.alarm(LIFE)  # a worker that has an alarm of its own stops this one


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(GRACE)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """Give a folder for the length of the block; in memory where the system has that."""
    shared = "/dev/shm"  # noqa: S108 - only a place, in which the folder gets a name of its own
    with tempfile.TemporaryDirectory(prefix="bench-", dir=shared if Path(shared).is_dir() else None) as path:
        yield Path(path)


def tail(log: Path, lines: int = 8) -> str:
    """Return the end of a log."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:]) if log.exists() else ""


def kit() -> str:
    """Return the interpreter of the kit: this one."""
    return sys.executable
