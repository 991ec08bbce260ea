"""Processes of a worker, as a test sees them."""

import contextlib
import os
import signal
import time
from pathlib import Path

from redis_kit.queues.inspection import list_workers
from tests.fixtures.process import is_alive, wait_for


def children(process):
    """Return the processes below a worker's first one that are in the registry."""
    return sorted(worker.pid for worker in list_workers() if worker.supervisor_pid == process.pid)


def stopped(process, number=signal.SIGTERM, *, within):
    """Send a signal; return the seconds until the process ended by itself, with 0."""
    began = time.monotonic()
    process.send_signal(number)
    assert process.wait(within) == 0
    return time.monotonic() - began


def end(process):
    """Kill a worker. Its children end by themselves, unless one is in C code that never returns."""
    file = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    below: list[int] = []
    with contextlib.suppress(OSError):  # it may have ended
        below = list(map(int, file.read_text().split()))
    process.kill()
    process.wait()
    for pid in below:
        with contextlib.suppress(AssertionError):
            wait_for(lambda pid=pid: not is_alive(pid), timeout=5)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
