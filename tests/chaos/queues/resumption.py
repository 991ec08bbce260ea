"""A resumable task over many rows, while its worker is killed and replaced; then the checker reads what was done.

    python -m tests.chaos.queues.resumption 10000 --kills 10 [--every 100] [--seed 7]

Each row is done at least once. A kill lets at most ``every`` rows be done again, and a deploy none.
"""

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

from tests.chaos.queues.support import history
from tests.chaos.queues.support.database import prepare
from tests.chaos.queues.support.workers import Fleet, wait_until
from tests.fixtures.process import Server

KINDS = ("child", "deploy", "machine")
LEASES = {"HEARTBEAT_INTERVAL": 0.2, "WORKER_TIMEOUT": 1.0}
PATIENCE = 60.0  # seconds for the rows between two kills


class Runs:
    """The rows that were done, by run: which process did them, in which order."""

    def __init__(self, path: Path) -> None:
        self.runs: list[tuple[int, list[int]]] = []
        for entry in history.read(path):
            if not self.runs or self.runs[-1][0] != entry.pid:
                self.runs.append((entry.pid, []))
            self.runs[-1][1].append(entry.number)

    @property
    def rows(self) -> list[int]:
        """Return all rows, in the order in which they were done."""
        return [row for _, rows in self.runs for row in rows]

    def again(self) -> list[int]:
        """Return how many rows each run did that were done before."""
        done: set[int] = set()
        found = []
        for _, rows in self.runs:
            found.append(len(done.intersection(rows)))
            done.update(rows)
        return found[1:]


def violations(runs: Runs, kills: list[str], rows: list[int], every: int) -> list[str]:
    """Return what must never happen."""
    missing = set(rows) - set(runs.rows)
    found = [f"{len(missing)} rows were not done: {sorted(missing)[:5]}"] if missing else []
    again = runs.again()
    if len(again) != len(kills):
        found.append(f"There were {len(kills)} kills and {len(again) + 1} runs.")
    for number, (kind, count) in enumerate(zip(kills, again, strict=False)):
        most = 0 if kind == "deploy" else every
        if count > most:
            found.append(f"After kill {number} ({kind}) {count} rows were done again, over {most}.")
    return found


def run(count: int, *, kills: int, every: int, seed: int) -> int:
    """Run the task over this many rows, print what was found, and return the exit code."""
    randomness = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="chaos") as name:
        folder, server = Path(name), Server(tcp=True, persistence=True)
        try:
            prepare(folder, server, f"r{seed}", LEASES)
            return _run(folder, count, kills, every, randomness, seed)
        finally:
            server.stop()


def _run(folder: Path, count: int, kills: int, every: int, randomness: random.Random, seed: int) -> int:
    from tests.app.models import Place
    from tests.chaos.queues.row_tasks import walk

    Place.objects.bulk_create([Place(city="c") for _ in range(count)], batch_size=500)
    rows = sorted(Place.objects.values_list("pk", flat=True))
    path, began = folder / "history", time.monotonic()
    environment = {history.VARIABLE: str(path)}
    fleet = Fleet(folder, size=1, options=["--threads", 1, "--grace", 5], environment=environment)
    injected: list[str] = []
    try:
        result = walk.enqueue(every)
        for number in range(kills):
            at = count * (number + randomness.uniform(0.3, 0.7)) / kills
            if not wait_until(lambda at=at: path.exists() and path.read_bytes().count(b"\n") >= at, PATIENCE):
                break
            kind = KINDS[number % len(KINDS)]
            _kill(fleet, kind)
            injected.append(kind)
        done = wait_until(lambda: result.refresh() or result.is_finished, PATIENCE)
    finally:
        for supervisor in fleet.supervisors:
            supervisor.children()
        fleet.stop()
        fleet.close()
    runs = Runs(path)
    found = violations(runs, injected, rows, every)
    if not done or result.status != "SUCCESSFUL":
        found.append(f"The job is {result.status}: {result.errors}")
    seconds = time.monotonic() - began
    print(f"seed {seed}: {count} rows, {len(injected)} kills, done again: {runs.again()}; {seconds:.1f} s")
    print("\n".join(found) or "Nothing is wrong.", flush=True)
    return bool(found)


def _kill(fleet: Fleet, kind: str) -> None:
    with fleet.lock:
        supervisor = fleet.supervisors[0]
        children = supervisor.children()
        if kind == "deploy":
            os.kill(supervisor.pid, signal.SIGTERM)
            return
        for pid in (*([supervisor.pid] if kind == "machine" else []), *children):
            os.kill(pid, signal.SIGKILL)


def main() -> int:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("count", type=int)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--every", type=int, default=100)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    return run(options.count, kills=options.kills, every=options.every, seed=options.seed)


if __name__ == "__main__":
    sys.exit(main())
