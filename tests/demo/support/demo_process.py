"""``rk_demo`` as a process, and the processes and files that it leaves."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).parents[3]
COMMAND = [sys.executable, str(ROOT / "manage.py"), "rk_demo"]
Answer = TypeVar("Answer")


def wait_for(condition: Callable[[], Answer], *, seconds: float) -> Answer:
    """Return the condition's first true answer."""
    deadline = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.01)
    return answer


def inherited() -> dict[str, str]:
    """Return the environment without what tests set."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("DJANGO_", "REDIS_KIT_"))}


class Demo:
    """A run of the command with its own folder for temporary files and stored data."""

    def __init__(self, folder: Path, *arguments: str, **environment: str) -> None:
        self.folder = folder
        self.temporary = folder / "tmp"
        self.temporary.mkdir(exist_ok=True)
        own = {"TMPDIR": str(self.temporary), "READING_DATABASE": str(folder / "home" / "reading.sqlite3")}
        self.output = folder / f"output-{time.monotonic_ns()}"
        with self.output.open("w") as output:
            settings = {"env": inherited() | own | environment, "cwd": folder}
            self.process = subprocess.Popen([*COMMAND, *arguments], stdout=output, stderr=subprocess.STDOUT, **settings)

    @property
    def text(self) -> str:
        """Return its output so far."""
        return self.output.read_text()

    def printed(self, pattern: str, *, seconds: float = 60) -> str:
        """Wait until the output matches, and return the first group of the match."""

        def matched() -> re.Match[str] | None:
            match = re.search(pattern, self.text)
            assert match or self.process.poll() is None, self.text
            return match

        return wait_for(matched, seconds=seconds)[1]

    def ended(self, *, seconds: float) -> int:
        """Wait until it has ended, and return its exit code."""
        return self.process.wait(timeout=seconds)

    def kill(self) -> None:
        """Kill it."""
        self.process.kill()
        self.process.wait()

    def processes(self) -> list[int]:
        """Return its process and those that it started, as far as they are alive."""
        mark = str(self.temporary).encode()
        # The server writes its title over its environment; that names its socket.
        return [
            int(process.name)
            for process in Path("/proc").glob("[0-9]*")
            if mark in content(process / "environ") or mark in content(process / "cmdline")
        ]

    def child(self, name: str) -> int:
        """Wait for the process that runs a program, and return it."""
        return wait_for(lambda: self._child(name), seconds=30)

    def _child(self, name: str) -> int | None:
        commands = {pid: content(Path(f"/proc/{pid}/cmdline")) for pid in self.processes()}
        # The guard of a program names it too.
        pids = [pid for pid, words in commands.items() if name.encode() in words and b"guard.py" not in words]
        return pids[0] if pids else None

    def leaves_nothing(self) -> bool:
        """Return whether no process and no temporary file is left."""
        return not self.processes() and not list(self.temporary.iterdir())

    def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Send a signal, and wait for the end."""
        self.process.send_signal(number)
        self.ended(seconds=30)


def content(path: Path) -> bytes:
    """Return the content of a file; empty if its process has ended."""
    try:
        return path.read_bytes()
    except OSError:
        return b""
