"""What the tasks of a test's workers did, step by step."""

import os
import time
from pathlib import Path
from typing import NamedTuple

QUICK = {"HEARTBEAT_INTERVAL": 0.1, "WORKER_TIMEOUT": 0.6}
# No moment at which the machine has no time for a worker looks like its death.
LASTING = {"HEARTBEAT_INTERVAL": 0.5, "WORKER_TIMEOUT": 4}


def write(name: str, step: str) -> None:
    """Add a line to the journal of the test that this process works for."""
    line = f"{name} {step} {os.getpid()} {time.time():.6f}\n"
    file = os.open(os.environ["JOURNAL"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, line.encode())
    os.close(file)


class Line(NamedTuple):
    """One step of one task."""

    name: str
    step: str
    pid: int
    at: float


class Journal:
    """What the tasks of all workers wrote, in their order."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def lines(self, *, name: str = "", step: str = "") -> list[Line]:
        text = self.path.read_text() if self.path.exists() else ""
        whole = text[: text.rfind("\n") + 1]  # another process may be writing the last line
        found = [Line(name, step, int(pid), float(at)) for name, step, pid, at in map(str.split, whole.splitlines())]
        return [line for line in found if name in ("", line.name) and step in ("", line.step)]

    def names(self, step: str = "end") -> list[str]:
        return [line.name for line in self.lines(step=step)]
