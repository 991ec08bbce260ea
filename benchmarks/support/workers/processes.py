"""The processes of a benchmark. They end with the benchmark, even if that is killed."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[3]
MAX_LIFE = 300  # seconds after which a process ends in any case
GRACE = 5.0
END_WITH_PARENT = 1  # PR_SET_PDEATHSIG of <linux/prctl.h>


def environment(python: str, **more: str) -> dict[str, str]:
    """Return the environment of a process of a benchmark, with its interpreter's folder first in ``PATH``."""
    path = f"{Path(python).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return {**os.environ, "PYTHONPATH": str(ROOT), "PATH": path, "PYTHONWARNINGS": "ignore", **more}


@contextlib.contextmanager
def running(commands: Sequence[Sequence[str]], *, env: Mapping[str, str], log: Path) -> Iterator[list[int]]:
    """Run these commands for the length of the block, with their output in a file; return their process ids."""
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
            start_new_session=True,  # its own group, so that its children end with it
            preexec_fn=_bound,
        )


def _bound() -> None:
    """End this process with the benchmark, even if that is killed; after 300 s where the system can't do that."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(END_WITH_PARENT, signal.SIGTERM)
    signal.alarm(MAX_LIFE)  # a worker that has an alarm of its own stops this one


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(GRACE)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """Create a folder for the length of the block, in memory if the system has that."""
    shared = "/dev/shm"  # noqa: S108 - the folder in it gets a unique name
    with tempfile.TemporaryDirectory(prefix="bench-", dir=shared if Path(shared).is_dir() else None) as path:
        yield Path(path)


def tail(log: Path, lines: int = 8) -> str:
    """Return the end of a log."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:]) if log.exists() else ""


def kit() -> str:
    """Return the interpreter of the kit: this one."""
    return sys.executable
