"""Tasks of the kit run on Celery's workers, which are killed while they work.

    python -m tests.chaos queues.celery_fleet 300

Each job has to succeed. No two runs of a job may overlap, and a job runs again only if its worker was killed.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

from redis_kit.queues import Queue, QueueCounts
from tests.chaos.engine import faults, program
from tests.chaos.engine.program import Outcome
from tests.chaos.engine.stage import SETTINGS, stage, wait_until
from tests.chaos.queues.support.workers import ROOT, Fleet
from tests.queues.support.journal import Journal, Line

OPTIONS = {
    "HEARTBEAT_INTERVAL": 0.3,
    "WORKER_TIMEOUT": 1.5,
    "MAX_CRASHES": 100,
    "CELERY_APP": "tests.queues.support.fleet.app",
}
COMMAND = ("-m", "django", "rk_worker", "--settings", SETTINGS)
CELERY = ("-m", "celery", "-A", "tests.queues.support.fleet", "worker", "--pool", "prefork", "--concurrency", "3")
QUIET = ("--without-gossip", "--without-mingle", "--without-heartbeat")
CALM = (0.5, 1.5)  # seconds between two kills
# What a worker had fetched and not begun comes back soon.
SOON = {"visibility_timeout": 3, "unacked_restore_interval": 0.5, "unacked_restore_throttle": 1}


@dataclass(frozen=True)
class Plan(program.Plan):
    """How many jobs there are, and how long each takes."""

    jobs: int = 300
    seconds: float = 0.02
    patience: float = 90.0


def violations(wanted: Sequence[str], lines: Sequence[Line], kills: int) -> tuple[dict[str, list[str]], int]:
    """Return what must not be, by its kind, and how many runs more than jobs there were."""
    found: dict[str, list[str]] = {"lost": [], "overlap": [], "unexplained": []}
    runs, again = defaultdict(list), 0
    for line in lines:
        runs[line.name].append(line)
    for name in wanted:
        steps = runs[name]
        if not any(line.step == "end" for line in steps):
            found["lost"].append(f"job {name} did not end")
        for before, line in pairwise(steps):
            if before.step == "end":
                rerun = f"job {name} ran again after its end"
                found["overlap"].append(rerun if line.step == "begin" else f"runs of job {name} overlap")
        again += max(0, sum(line.step == "begin" for line in steps) - 1)
    if again > kills * 3:
        found["unexplained"].append(f"{again} runs more than jobs after {kills} kills")
    return found, again


class CeleryWorker:
    """A worker of Celery, started again whenever it was killed as a whole."""

    def __init__(self, environment: dict[str, str], log: Path) -> None:
        self.environment, self.log = {**os.environ, **environment}, log
        self.start()

    def start(self) -> None:
        with self.log.open("ab") as log:
            command = [sys.executable, *CELERY, *QUIET]
            self.process: Any = subprocess.Popen(
                command, cwd=ROOT, env=self.environment, stdout=log, stderr=log, process_group=0
            )

    def kill(self, random: Random) -> None:
        """Kill one of its processes, or all of them."""
        file = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        children = list(map(int, file.read_text().split()))
        if children and random.random() < 0.7:
            faults.kill(random.choice(children))
        else:
            self.close()
            self.start()

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def run(plan: Plan) -> Outcome:
    """Run jobs while Celery's worker is killed. All that it starts has ended when it returns."""
    with stage(QUEUES=OPTIONS) as place:
        random, queue, journal = Random(plan.seed), Queue("default"), Journal(place.folder / "journal")
        environment = place.environment(
            CELERY_BROKER=f"redis://127.0.0.1:{place.server.port}/5",
            CELERY_OPTIONS=json.dumps(SOON),
            JOURNAL=str(journal.path),
            TASK_BACKEND="redis_kit.queues.celery.CeleryTaskBackend",
        )
        fleet = Fleet(place.folder, size=1, options=["--threads", 4], environment=environment, command=COMMAND)
        place.at_the_end(fleet.close)
        celery = CeleryWorker(environment, place.folder / "celery.log")
        place.at_the_end(celery.close)
        wanted = [f"n{number}" for number in range(plan.jobs)]
        task = "tests.queues.support.tasks.note_slowly"
        queue.put_many([{"task": task, "args": [name, plan.seconds]} for name in wanted])
        wait_until(lambda: journal.lines(step="begin"), plan.patience)
        kinds = {"kill": lambda: celery.kill(random)}
        most = ["kill"] * int(plan.patience / CALM[0])
        injected = faults.Faults(kinds, most, chance=random, calm=CALM)
        while any(queue.counts()[:3]) and injected.next():
            pass
        wait_until(lambda: not any(queue.counts()[:3]), plan.patience)
        left, kills = queue.counts(), injected.count["kill"]
        found, again = violations(wanted, [line for line in journal.lines() if line.name != "worker"], kills)
        found["left"] = [] if left == QueueCounts(0, 0, 0, 0) else [f"jobs are left: {left}"]
        log = celery.log.read_text(errors="replace")
    if found["left"]:
        print(log[-3000:], file=sys.stderr)
    return Outcome(f"{plan.jobs} jobs, {kills} kills, {again} runs more", found, logs=log)
