"""What the tasks did: a line a step, each a single write(), so that SIGKILL loses none and cuts none."""

import os
import time
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

Phase = Literal["begin", "end", "raise"]
VARIABLE = "CHAOS_JOURNAL"


class Entry(NamedTuple):
    """A step of the job that was sent as this number. ``at`` is in ns of the clock that all processes share."""

    number: int
    pid: int
    at: int
    phase: Phase
    attempt: int = 0  # 0: the task did not ask


def note(number: int, phase: Phase, attempt: int = 0) -> None:
    """Write down what happens now."""
    line = b"%d %d %d %s %d\n" % (number, os.getpid(), time.monotonic_ns(), phase.encode(), attempt)
    os.write(_file(os.environ[VARIABLE]), line)


@cache
def _file(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


def read(path: Path) -> list[Entry]:
    """Return all that was written, in the order of time."""
    if not path.exists():
        return []
    lines = map(str.split, path.read_text().splitlines())
    found = (Entry(int(number), int(pid), int(at), phase, int(attempt)) for number, pid, at, phase, attempt in lines)
    return sorted(found, key=lambda entry: entry.at)
