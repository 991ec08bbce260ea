"""The processor time of processes, which does not depend on the machine's other work. On Linux only."""

import contextlib
import os
import time
from collections.abc import Iterable
from pathlib import Path

KNOWN = Path("/proc/self/stat").exists()


def seconds(pids: Iterable[int]) -> float:
    """Return the processor time of these processes with all their threads; 0 if the system does not provide it."""
    total = 0.0
    for pid in pids:
        with contextlib.suppress(OSError, ProcessLookupError):
            total += time.clock_gettime((~pid << 3) | 2)  # the kernel's name for a process's own clock
    return total if KNOWN else 0.0


def sessions(leaders: Iterable[int]) -> list[int]:
    """Return these processes and all processes of their sessions."""
    wanted = set(leaders)
    pids = []
    for entry in os.scandir("/proc") if KNOWN else ():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                fields = Path(entry.path, "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) in wanted:
                    pids.append(int(entry.name))
    return pids
