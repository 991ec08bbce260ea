"""Processes of a worker, as a test sees them."""

import os
import signal
import time

from redis_kit.queues import workers


def children(process):
    """Return the processes below a worker's first one that are in the registry."""
    return sorted(worker.pid for worker in workers() if worker.supervisor_pid == process.pid)


def stopped(process, number=signal.SIGTERM, *, within):
    """Send a signal; return the seconds until the process ended by itself, with 0."""
    began = time.monotonic()
    process.send_signal(number)
    assert process.wait(within) == 0
    return time.monotonic() - began


def gone(pid):
    """Say whether there is no such process."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False
