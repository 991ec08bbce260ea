"""Processes compete for locks while all goes wrong; then their history is checked.

    python -m tests.chaos.locks.contention --seconds 60 --kind lock --async

prints one line, and below it what the checkers found; it ends with 1 where that is anything. The same ``--seed`` brings
the same faults in the same order, ``--bug`` puts one of the seeded bugs in.
"""

import argparse
import contextlib
import secrets
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.locks.support import checkers
from tests.chaos.locks.support.fault_injector import FaultInjector
from tests.chaos.locks.support.history import Event, HistoryFile
from tests.chaos.locks.support.kinds import KINDS, SLOTS, names
from tests.chaos.locks.support.leases import holds
from tests.chaos.locks.support.process_pool import ProcessPool
from tests.chaos.locks.support.processes import Workspace
from tests.fixtures.fork_server import start_python
from tests.fixtures.process import Server
from tests.fixtures.proxy import Proxy

START = 0.4  # seconds until a process competes
CALM = (0.05, 0.4)  # seconds between two faults
SHOWN = 20  # violations


@dataclass(frozen=True)
class Plan:
    """What is to be run."""

    seconds: float
    kinds: Sequence[str]
    run_async: bool | None = False  # None: in every other pair of processes
    seed: int = 1
    processes: int = 4
    tasks: int = 1  # in each process, for each kind
    names: int = 4  # locks of each kind
    lease: float = 1.0
    bug: str = ""
    keep: Path | None = None  # a folder for the histories and the database, else they are deleted

    def options(self, number: int) -> list[str]:
        """Return the options of a process."""
        numbers = {"--tasks": self.tasks, "--names": self.names, "--lease": self.lease, "--bug": self.bug}
        found = ["--kinds", *self.kinds, *(str(part) for option in numbers.items() for part in option)]
        run_async = number % 4 > 1 if self.run_async is None else self.run_async
        return [*found, "--async"] if run_async else found


@dataclass(frozen=True)
class Outcome:
    """What it came to."""

    plan: Plan
    history: Sequence[Event]
    faults: dict[str, int]
    violations: list[str]

    def count(self, what: str) -> int:
        """Return how often something happened."""
        return sum(event.what == what for event in self.history)

    def __str__(self) -> str:
        found = holds(self.history)
        overlapping = checkers.overlaps(self.history) + checkers.overlaps_on_the_server(self.history)
        over = sum(text.startswith(SLOTS) for text in overlapping)
        counts = {
            "sections": self.count("asked"),
            "holds": len(found),
            "fences": len({(hold.name, hold.fence) for hold in found}),
            "lost": self.count("lost"),
            "overlaps": len(overlapping) - over,
            "over limit": over,
            "stale writes offered": self.count("stale"),
            "accepted": len(checkers.stale_writes(self.history)),
            "violations": len(self.violations),
            **self.faults,
        }
        style = {True: "async", False: "threads", None: "both"}[self.plan.run_async]
        return f"{'+'.join(self.plan.kinds)} ({style}, seed {self.plan.seed}): " + ", ".join(
            f"{what} {n:,}" for what, n in counts.items()
        )


def run(plan: Plan) -> Outcome:
    """Let processes compete for some seconds and check what they did. All that it starts has ended when it returns."""
    with contextlib.ExitStack() as stack:
        folder = plan.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        stack.callback((server := Server(tcp=True)).stop)
        stack.callback((proxy := Proxy(server.port)).stop)
        guarded = [name for kind in plan.kinds for name in names(kind, plan.names)]
        workspace = stack.enter_context(Workspace(folder, url=server.url, names=guarded))
        stack.callback((history_file := HistoryFile(folder / "faults.history")).close)
        start_python(["-c", ""]).wait()  # the first program waits for the imports of all
        end = time.monotonic() + plan.seconds
        urls = (server.url, proxy.url)
        pool = ProcessPool(workspace, urls=urls, size=plan.processes, end=end, options=plan.options)
        injector = FaultInjector(server=server, proxy=proxy, pool=pool, lease=plan.lease, seed=plan.seed)
        time.sleep(min(START, plan.seconds))
        while time.monotonic() < end - plan.lease and pool.is_whole():
            injector.next(history_file)
            time.sleep(injector.chance.uniform(*CALM))
        failed = pool.wait()
        history = workspace.history()
    found = [violation for check in checkers.ALWAYS for violation in check(history)]
    return Outcome(plan, history, dict(injector.count), failed + found)


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description="Compete for locks while all goes wrong.")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--kind", choices=[*KINDS, "all"], default="lock")
    parser.add_argument("--async", action="store_true", dest="run_async", help="tasks and no threads")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--tasks", type=int, default=3, help="workers in each process, for each kind")
    parser.add_argument("--names", type=int, default=4, help="locks of each kind")
    parser.add_argument("--lease", type=float, default=1.0)
    parser.add_argument("--bug", default="", help="put this one in")
    parser.add_argument("--keep", type=Path, help="an empty folder that is to keep the histories")
    given = vars(parser.parse_args())
    kind = given.pop("kind")
    outcome = run(Plan(kinds=tuple(KINDS) if kind == "all" else (kind,), **given))
    print("\n  ".join([str(outcome), *outcome.violations[:SHOWN]]))
    return bool(outcome.violations)


if __name__ == "__main__":
    sys.exit(main())
