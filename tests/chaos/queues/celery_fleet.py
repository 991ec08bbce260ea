"""Tasks of the kit run on Celery's workers, which are killed while they work.

    python -m tests.chaos.queues.celery_fleet 1000

Each job has to succeed. No two runs of a job may overlap, and a job runs again only if its worker was killed.
"""

import argparse
import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

from django.test.utils import override_settings

from redis_kit.core import connections
from redis_kit.queues import Queue, QueueCounts
from tests.chaos.queues.support import program
from tests.chaos.queues.support.workers import Fleet, wait_until
from tests.fixtures.process import Server
from tests.queues.support.journal import Journal, Line

ROOT = Path(__file__).parents[3]
OPTIONS = {
    "HEARTBEAT_INTERVAL": 0.3,
    "WORKER_TIMEOUT": 1.5,
    "MAX_CRASHES": 100,
    "CELERY_APP": "tests.queues.support.fleet.app",
}
COMMAND = ("-m", "django", "rk_worker", "--settings", "tests.chaos.settings")
CELERY = ("-m", "celery", "-A", "tests.queues.support.fleet", "worker", "--pool", "prefork", "--concurrency", "3")
QUIET = ("--without-gossip", "--without-mingle", "--without-heartbeat")
CALM = (0.5, 1.5)  # seconds between two kills


@dataclass
class Outcome:
    """What it came to."""

    seed: int
    wanted: list[str]
    lines: list[Line]
    left: QueueCounts
    seconds: float
    kills: int = 0
    again: int = field(default=0)

    def violations(self) -> list[str]:
        """Return what must not be."""
        found, runs = [], defaultdict(list)
        for line in self.lines:
            runs[line.name].append(line)
        for name in self.wanted:
            steps = runs[name]
            if not any(line.step == "end" for line in steps):
                found.append(f"job {name} did not end")
            for before, line in pairwise(steps):
                if before.step == "end":
                    again = f"job {name} ran again after its end"
                    found.append(again if line.step == "begin" else f"runs of job {name} overlap")
            self.again += max(0, sum(line.step == "begin" for line in steps) - 1)
        if self.again > self.kills * 3:
            found.append(f"{self.again} runs more than jobs after {self.kills} kills")
        if self.left != QueueCounts(0, 0, 0, 0):
            found.append(f"jobs are left: {self.left}")
        return found


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
            with contextlib.suppress(ProcessLookupError):
                os.kill(random.choice(children), signal.SIGKILL)
        else:
            self.close()
            self.start()

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def run(jobs: int, *, seed: int, kills: int = 1_000_000, seconds: float = 0.02, patience: float = 90.0) -> Outcome:
    """Run jobs while Celery's worker is killed. All that it starts has ended when it returns."""
    random, began = Random(seed), time.monotonic()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fleet", ignore_cleanup_errors=True)))
        server = Server(tcp=True)
        stack.callback(server.stop)
        settings = {
            "CONNECTIONS": {"default": server.connection},
            "QUEUES": OPTIONS,
            "PREFIX": f"f{secrets.token_hex(3)}",
        }
        stack.enter_context(override_settings(REDIS_KIT=settings))
        stack.callback(connections.close)
        environment = {
            "REDIS_KIT": json.dumps(settings),
            "CELERY_BROKER": f"redis://127.0.0.1:{server.port}/5",
            # What a worker had fetched and not begun comes back soon.
            "CELERY_OPTIONS": json.dumps(
                {"visibility_timeout": 3, "unacked_restore_interval": 0.5, "unacked_restore_throttle": 1}
            ),
            "JOURNAL": str(folder / "journal"),
            "TASK_BACKEND": "redis_kit.queues.celery.CeleryTaskBackend",
            "DJANGO_SETTINGS_MODULE": "tests.chaos.settings",
        }
        fleet = Fleet(folder, size=1, options=["--threads", 4], environment=environment, command=COMMAND)
        stack.callback(fleet.close)
        celery = CeleryWorker(environment, folder / "celery.log")
        stack.callback(lambda: celery.close())
        queue, journal = Queue("default"), Journal(folder / "journal")
        wanted = [f"n{number}" for number in range(jobs)]
        task = "tests.queues.support.tasks.note_slowly"
        queue.put_many([{"task": task, "args": [name, seconds]} for name in wanted])
        outcome = Outcome(seed, wanted, [], QueueCounts(0, 0, 0, 0), 0.0)
        ends = time.monotonic() + patience
        wait_until(lambda: journal.lines(step="begin"), patience)
        while any(queue.counts()[:3]) and outcome.kills < kills and time.monotonic() < ends:
            time.sleep(random.uniform(*CALM))
            celery.kill(random)
            outcome.kills += 1
        with contextlib.suppress(AssertionError):
            wait_until(lambda: not any(queue.counts()[:3]), patience)
        outcome.left, outcome.seconds = queue.counts(), time.monotonic() - began
        outcome.lines = [line for line in journal.lines() if line.name != "worker"]
        if outcome.left != QueueCounts(0, 0, 0, 0):
            print(celery.log.read_text(errors="replace")[-3000:], file=sys.stderr)
        return outcome


def main() -> int:
    """Run it from a shell."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("jobs", type=int, nargs="?", default=300)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    given = parser.parse_args()
    outcome = run(given.jobs, seed=given.seed)
    violations = outcome.violations()
    summary = f"{given.jobs} jobs in {outcome.seconds:.1f} s, {outcome.kills} kills, {outcome.again} runs more"
    print(f"seed {outcome.seed}: {summary}")
    for violation in violations[:20]:
        print(violation)
    return int(bool(violations))


if __name__ == "__main__":
    program.run(main)
