"""A resumable task over many rows, while its worker is killed and replaced; then the checker reads what was done.

    python -m tests.chaos queues.resumption 10000 --kills 10

Each row is done at least once. A kill lets at most ``every`` rows be done again, and a deploy none.
"""

import random
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.app.models import Place
from tests.chaos.engine import program
from tests.chaos.engine.faults import Faults, in_turn, kill
from tests.chaos.engine.program import Outcome
from tests.chaos.engine.stage import create_tables, stage, wait_until
from tests.chaos.queues.row_tasks import walk
from tests.chaos.queues.support import history
from tests.chaos.queues.support.workers import Fleet

KINDS = ("child", "deploy", "machine")
LEASES = {"HEARTBEAT_INTERVAL": 0.2, "WORKER_TIMEOUT": 1.0, "IMPORTS": ["tests.chaos.queues.row_tasks"]}
PATIENCE = 60.0  # seconds for the rows between two kills


@dataclass(frozen=True)
class Plan(program.Plan):
    """How many rows there are, and how many kills."""

    count: int
    kills: int = 10
    every: int = 100


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


def violations(runs: Runs, kills: Sequence[str], rows: Sequence[int], every: int) -> dict[str, list[str]]:
    """Return what must never happen, by its kind."""
    missing = set(rows) - set(runs.rows)
    found = {"lost": [f"{len(missing)} rows were not done: {sorted(missing)[:5]}"] if missing else [], "doubled": []}
    again = runs.again()
    uneven = [f"There were {len(kills)} kills and {len(again) + 1} runs."]
    for number, (kind, count) in enumerate(zip(kills, again, strict=False)):
        most = 0 if kind == "deploy" else every
        if count > most:
            found["doubled"].append(f"After kill {number} ({kind}) {count} rows were done again, over {most}.")
    return {**found, "uneven": uneven if len(again) != len(kills) else []}


def run(plan: Plan) -> Outcome:
    """Run the task over the rows, and kill its worker."""
    create_tables(Place)
    Place.objects.bulk_create([Place(city="c") for _ in range(plan.count)], batch_size=500)
    rows = sorted(Place.objects.values_list("pk", flat=True))
    with stage("always", QUEUES=LEASES) as place:
        chance, path = random.Random(plan.seed), place.folder / "history"
        environment = place.environment(**{history.VARIABLE: str(path)})
        fleet = Fleet(place.folder, size=1, options=["--threads", 1, "--grace", 5], environment=environment)
        place.at_the_end(fleet.close)
        result, injected = walk.enqueue(plan.every), list[str]()
        faults = Faults({kind: lambda kind=kind: _kill(fleet, kind) for kind in KINDS}, in_turn(KINDS), chance=chance)
        for number in range(plan.kills):
            at = plan.count * (number + chance.uniform(0.3, 0.7)) / plan.kills
            if not wait_until(lambda at=at: path.exists() and path.read_bytes().count(b"\n") >= at, PATIENCE):
                break
            injected.append(faults.next())
        done = wait_until(lambda: result.refresh() or result.is_finished, PATIENCE)
        fleet.stop()
        runs = Runs(path)
    found = violations(runs, injected, rows, plan.every)
    found["job"] = [] if done and result.status == "SUCCESSFUL" else [f"it is {result.status}: {result.errors}"]
    return Outcome(f"{plan.count} rows; {faults}; done again: {runs.again()}", found)


def _kill(fleet: Fleet, kind: str) -> None:
    with fleet.lock:
        supervisor = fleet.supervisors[0]
        children = supervisor.children()
        if kind == "deploy":
            kill(supervisor.pid, number=signal.SIGTERM)
        else:
            kill(*([supervisor.pid] if kind == "machine" else []), *children)
