"""Releases come and go under load: some tasks are new, renamed or changed, so that no worker knows them all.

    python -m tests.chaos queues.rollout 20000 --rounds 10 [--shards 4]

Workers of both releases are started and stopped in waves, rolled out and rolled back; the load calls the tasks of both.
In the end a worker of each is there, and every job must have run once. The same seed brings the same calls.
"""

import os
import signal
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from threading import Event, Thread
from typing import Any, Literal

from redis_kit.queues import Queue, QueueCounts
from tests.chaos.engine import program
from tests.chaos.engine.program import Outcome
from tests.chaos.engine.stage import stage, wait_until
from tests.chaos.queues.support import history
from tests.chaos.queues.support.workers import COMMAND, ROOT
from tests.fixtures.fork_server import PythonProcess, start_python

Release = Literal["old", "new"]
LEASES = {"HEARTBEAT_INTERVAL": 0.3, "WORKER_TIMEOUT": 4.0}
START, STOP = 60.0, 40.0  # seconds
HOME = "tests.queues.support.releases.tasks"
CALLS: dict[str, dict[str, Any]] = {  # which a release makes; ``args`` get the number of the job
    "kept": {},
    "added": {},
    "renamed": {},
    "before": {},
    "changed": {},
    "changed in the new release": {"task": f"{HOME}.changed", "kwargs": {"colour": "red"}},
    "changed twice": {"task": f"{HOME}.changed", "kwargs": {"colour": "red", "size": 2}},
}


@dataclass(frozen=True)
class Plan(program.Plan):
    """What is to be run."""

    jobs: int
    rate: float = 300.0  # jobs a second
    rounds: int = 5  # of rolling out and back
    calm: float = 1.0  # seconds between two steps
    options: Mapping[str, Any] = field(default_factory=dict)  # of queues
    shards: int = 1
    command: tuple[str, ...] = COMMAND
    patience: float = 30.0  # seconds for all to be done when workers of both releases are there


class Fleet:
    """Workers of both releases."""

    def __init__(self, folder: Path, environment: Mapping[str, str], command: tuple[str, ...]) -> None:
        self.folder, self.environment, self.command = folder, environment, command
        self.working: list[tuple[Release, PythonProcess]] = []
        self.count = 0

    def start(self, release: Release) -> None:
        """Start a worker, and return when it works."""
        log = self.folder / f"worker{self.count}-{release}.log"
        self.count += 1
        environment = {**os.environ, **self.environment, "RELEASE": release}
        with log.open("wb") as file:
            command = [*self.command, "--threads", "2"]
            process = start_python(command, cwd=ROOT, env=environment, text=False, stdout=file, stderr=file)
        self.working.append((release, process))
        if not wait_until(lambda: b"works on" in log.read_bytes(), START):
            raise AssertionError(f"no worker within {START} s: {log.read_text()[-2000:]}")

    def stop(self, release: Release) -> None:
        """Stop the workers of a release, one after the other."""
        for one in [one for one in self.working if one[0] == release]:
            one[1].send_signal(signal.SIGTERM)
            if code := one[1].wait(STOP):
                raise AssertionError(f"a worker ended with {code}: {self.logs()[-2000:]}")
            self.working.remove(one)

    def close(self) -> None:
        """Kill those that are left; their children end with them."""
        for _, process in self.working:
            process.kill()
            process.wait()

    def logs(self) -> str:
        """Return what all have said."""
        return "".join(path.read_text(errors="replace") for path in sorted(self.folder.glob("worker*.log")))


class Load(Thread):
    """Calls of both releases, one after another, until it is told to stop and all are sent."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(daemon=True)
        self.plan, self.chance, self.sent = plan, Random(plan.seed), {}
        self.enough = Event()
        self.sent: dict[int, str] = {}

    def run(self) -> None:
        """Send them."""
        queue, began = Queue("default"), time.monotonic()
        while len(self.sent) < self.plan.jobs or not self.enough.is_set():
            number, kind = len(self.sent) + 1, self.chance.choice(list(CALLS))
            call = {"task": f"{HOME}.{kind}", **CALLS[kind], "args": [number]}
            queue.put(call, priority=self.chance.choice((-1, 0, 1)))
            self.sent[number] = kind
            time.sleep(max(0.0, began + number / self.plan.rate - time.monotonic()))


def run(plan: Plan) -> Outcome:
    """Roll out, roll back, and check the history. All that it starts has ended when it returns."""
    queues = {**LEASES, **plan.options, "QUEUE_OPTIONS": {"default": {"SHARDS": plan.shards}}}
    with stage(QUEUES=queues) as place:
        path = place.folder / "history"
        more = {history.VARIABLE: str(path), "CHAOS_LOG": "INFO", "MORE_APPS": "tests.queues.support.releases"}
        fleet = Fleet(place.folder, place.environment(**more), plan.command)
        place.at_the_end(fleet.close)
        load, queue = Load(plan), Queue("default")
        load.start()
        _waves(plan, fleet)
        load.enough.set()
        load.join()
        sure = time.monotonic()
        wait_until(lambda: queue.counts()._replace(dead=0) == QueueCounts(0, 0, 0, 0), plan.patience)
        last = time.monotonic() - sure
        left = queue.counts()
        for release in ("old", "new"):
            fleet.stop(release)
        kinds = Counter(load.sent[job.payload["args"][0]] for job in queue.peek(1000, state="dead"))
        ran, logs = Counter(entry.number for entry in history.read(path) if entry.phase == "end"), fleet.logs()
    recalled = sum(int(line.split(": ")[1].split()[0]) for line in logs.splitlines() if "can run here" in line)
    wrong = {number: f"job {number} ({kind}) ran {ran[number]} times" for number, kind in load.sent.items()}
    found = {
        "lost": [text for number, text in wrong.items() if not ran[number]],
        "doubled": [text for number, text in wrong.items() if ran[number] > 1],
        "left": [f"after {last:.1f} s the queue holds {left}"] if left != QueueCounts(0, 0, 0, 0) else [],
    }
    figures = (
        f"{len(load.sent):,} jobs, dead {kinds.total()} {dict(kinds) or ''}, made ready for a worker that knew them"
    )
    return Outcome(
        f"{figures} {recalled:,}; the end took {last:.1f} s", found, logs=logs, dead=kinds, recalled=recalled
    )


def _waves(plan: Plan, fleet: Fleet) -> None:
    fleet.start("old")
    for _ in range(plan.rounds):
        time.sleep(plan.calm)
        for release, other in (("new", "old"), ("old", "new")):  # out, then back
            fleet.start(release)
            time.sleep(plan.calm)
            fleet.stop(other)
            time.sleep(plan.calm)
    fleet.start("new")
