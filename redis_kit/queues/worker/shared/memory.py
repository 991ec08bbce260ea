"""How much memory a process has."""

import os
import resource
import sys
from contextlib import suppress
from pathlib import Path


def resident() -> float:
    """Return how much memory this process has, in MiB; where the system doesn't tell, the most that it ever had."""
    if (size := resident_of("self")) is not None:
        return size
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (2**20 if sys.platform == "darwin" else 2**10)


def resident_of(pid: int | str) -> float | None:
    """Return how much memory another process has, in MiB; None where the system doesn't tell."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    return None
