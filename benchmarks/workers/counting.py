"""How many commands a worker sends, by what the server tells of each."""

import time
from typing import NamedTuple

from benchmarks.workers.contestant import Filled, Pit
from benchmarks.workers.server import Ran

IDLE = 10.0  # seconds


class Commands(NamedTuple):
    """What a worker sends and what runs for it."""

    sent: float  # per job, by the client
    run: float  # per job, with those inside scripts
    idle: float  # a second, sent while there is nothing to do
    names: dict[str, float]  # sent per job


def commands(pit: Pit, filled: Filled, *, processes: int = 1, idle: float = IDLE) -> Commands:
    """Count a drain, and then some seconds without work."""
    pit.restore(filled)
    with pit.server.listening() as busy, pit.workers(processes):
        pit.wait(filled.count, seconds=60)
        time.sleep(3.0)  # what is to do after the last job
        with pit.server.listening() as rest:
            time.sleep(idle)
    return _per_job(busy, rest, filled.count, idle)


def _per_job(busy: Ran, rest: Ran, count: int, seconds: float) -> Commands:
    sent, inside = busy.sent - rest.sent, busy.inside - rest.inside
    names = {name: number / count for name, number in sent.most_common(4)}
    return Commands(sent.total() / count, (sent.total() + inside.total()) / count, rest.sent.total() / seconds, names)
