"""Executions: what the history says of each job, and which kill ended one."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tests.chaos.queues.support.fault_injector import Kill
from tests.chaos.queues.support.history import Entry

SECOND = 1_000_000_000  # ns


@dataclass
class Run:
    """One execution of a job. ``ended`` is None where it never came to an end."""

    number: int
    pid: int
    begun: int
    ended: int | None = None
    failed: bool = False
    kill: Kill | None = field(default=None, compare=False)  # which its process died of


def runs(history: Iterable[Entry], kills: Sequence[Kill]) -> dict[int, list[Run]]:
    """Return the executions of each job, in the order in which they began."""
    of_pid: dict[int, Kill] = {pid: kill for kill in reversed(kills) for pid in kill.pids}
    found: defaultdict[int, list[Run]] = defaultdict(list)
    for entry in history:
        if entry.phase == "begin":
            found[entry.number].append(Run(entry.number, entry.pid, entry.at, kill=of_pid.get(entry.pid)))
            continue
        run = next(run for run in reversed(found[entry.number]) if run.pid == entry.pid and run.ended is None)
        run.ended, run.failed = entry.at, entry.phase == "raise"
    return dict(found)
