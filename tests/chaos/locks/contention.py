"""Processes compete for locks while all goes wrong; then their history is checked.

    python -m tests.chaos locks.contention 60 --kind lock --run-async

The same ``--seed`` brings the same faults in the same order, ``--bug`` puts one of the seeded bugs in.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.engine import program
from tests.chaos.engine.program import Outcome, option
from tests.chaos.engine.stage import stage
from tests.chaos.locks.support import checkers
from tests.chaos.locks.support.fault_injector import FaultInjector
from tests.chaos.locks.support.history import Event, HistoryFile
from tests.chaos.locks.support.kinds import KINDS, SLOTS, names
from tests.chaos.locks.support.leases import holds
from tests.chaos.locks.support.process_pool import ProcessPool
from tests.chaos.locks.support.processes import Workspace
from tests.fixtures.fork_server import start_python

START = 0.4  # seconds until a process competes
CALM = (0.05, 0.4)  # seconds between two faults


@dataclass(frozen=True)
class Plan(program.Plan):
    """What is to be run."""

    seconds: float = 60.0
    kind: str = option("lock", "of lock", choices=("all", *KINDS))
    run_async: bool = option(False, "tasks and no threads")
    both: bool = option(False, "tasks in every other pair of processes")
    processes: int = 4
    tasks: int = option(3, "workers in each process, for each kind")
    names: int = option(4, "locks of each kind")
    lease: float = 1.0
    bug: str = option("", "put this one in")
    keep: str = option("", "an empty folder that is to keep the histories and the database")

    @property
    def kinds(self) -> Sequence[str]:
        """Return the kinds of locks."""
        return tuple(KINDS) if self.kind == "all" else (self.kind,)

    def options(self, number: int) -> list[str]:
        """Return the options of a process."""
        numbers = {"--tasks": self.tasks, "--names": self.names, "--lease": self.lease, "--bug": self.bug}
        found = ["--kinds", *self.kinds, *(str(part) for option in numbers.items() for part in option)]
        run_async = number % 4 > 1 if self.both else self.run_async
        return [*found, "--async"] if run_async else found


def run(plan: Plan) -> Outcome:
    """Let processes compete for some seconds and check what they did. All that it starts has ended when it returns."""
    with stage(keep=Path(plan.keep) if plan.keep else None) as place:
        proxy = place.proxy()
        guarded = [name for kind in plan.kinds for name in names(kind, plan.names)]
        workspace = place.enter(Workspace(place.folder, url=place.server.url, names=guarded))
        history_file = HistoryFile(place.folder / "faults.history")
        place.at_the_end(history_file.close)
        start_python(["-c", ""]).wait()  # the first program waits for the imports of all
        end = time.monotonic() + plan.seconds
        urls = (place.server.url, proxy.url)
        pool = ProcessPool(workspace, urls=urls, size=plan.processes, end=end, options=plan.options)
        injector = FaultInjector(server=place.server, proxy=proxy, pool=pool, lease=plan.lease, seed=plan.seed)
        time.sleep(min(START, plan.seconds))
        while time.monotonic() < end - plan.lease and pool.is_whole():
            injector.next(history_file)
            time.sleep(injector.chance.uniform(*CALM))
        failed = pool.wait()
        history = workspace.history()
    found = {check.__name__: check(history) for check in checkers.ALWAYS}
    figures = f"{_told(plan, history)}; {dict(injector.count)}"
    return Outcome(figures, {**found, "failed": failed}, history=history, faults=injector.count)


def _told(plan: Plan, history: Sequence[Event]) -> str:
    found = holds(history)
    count = {what: sum(event.what == what for event in history) for what in ("asked", "lost", "stale")}
    over = checkers.overlaps(history) + checkers.overlaps_on_the_server(history)
    counts = {
        "sections": count["asked"],
        "holds": len(found),
        "fences": len({(hold.name, hold.fence) for hold in found}),
        "lost": count["lost"],
        "over limit": sum(text.startswith(SLOTS) for text in over),
        "stale writes offered": count["stale"],
    }
    style = "both" if plan.both else "async" if plan.run_async else "threads"
    return f"{'+'.join(plan.kinds)} ({style}): " + ", ".join(f"{what} {n:,}" for what, n in counts.items())
