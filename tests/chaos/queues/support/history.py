"""What the tasks did: a line a step, each a single write(), so that SIGKILL loses none and cuts none."""

import os
import time
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

Phase = Literal["begin", "end", "raise"]
VARIABLE = "CHAOS_JOURNAL"
TAIL = 8192  # bytes


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
    return _entries(path.read_text().splitlines()) if path.exists() else []


def busy(path: Path) -> set[int]:
    """Return the pids of those that are in the middle of a job, as far as the last lines tell."""
    if not path.exists():
        return set()
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - TAIL))
        lines = file.read().decode().splitlines()[1:]
    held: dict[tuple[int, int], bool] = {}
    for entry in _entries(lines):
        held[entry.number, entry.pid] = entry.phase == "begin"
    return {pid for (_, pid), is_held in held.items() if is_held}


def _entries(lines: list[str]) -> list[Entry]:
    found = (
        Entry(int(number), int(pid), int(at), phase, int(attempt))  # type: ignore[arg-type]
        for number, pid, at, phase, attempt in map(str.split, lines)
    )
    return sorted(found, key=lambda entry: entry.at)
