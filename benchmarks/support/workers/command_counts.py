"""The number of commands that a worker sends, by MONITOR."""

import time
from typing import NamedTuple

from benchmarks.support.workers.server import Ran
from benchmarks.support.workers.testbed import Filled, TestBed

IDLE = 10.0  # seconds


class Commands(NamedTuple):
    """The commands of a worker."""

    sent: float  # per job, by the client
    run: float  # per job, with those inside scripts
    idle: float  # a second, sent by an idle worker
    names: dict[str, float]  # sent per job


def commands(bed: TestBed, filled: Filled, *, processes: int = 1, idle: float = IDLE) -> Commands:
    """Count the commands of a drain, and of some seconds without work."""
    bed.restore(filled)
    with bed.server.listening() as busy, bed.workers(processes):
        bed.wait(filled.count, seconds=60)
        time.sleep(3.0)  # for the work after the last job
        with bed.server.listening() as rest:
            time.sleep(idle)
    return _per_job(busy, rest, filled.count, idle)


def _per_job(busy: Ran, rest: Ran, count: int, seconds: float) -> Commands:
    sent, inside = busy.sent - rest.sent, busy.inside - rest.inside
    names = {name: number / count for name, number in sent.most_common(4)}
    return Commands(sent.total() / count, (sent.total() + inside.total()) / count, rest.sent.total() / seconds, names)
