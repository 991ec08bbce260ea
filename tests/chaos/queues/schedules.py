"""Ticks of schedules while workers and the server are killed, and what they cost.

    python -m tests.chaos.queues.schedules 1000 --workers 16 --kills 12
    python -m tests.chaos.queues.schedules 1000 --workers 16 --kills 0      # how late ticks are
    python -m tests.chaos.queues.schedules --idle 10000 --workers 4         # what schedules cost that do not tick

Each tick is to be added once and to run, whoever dies, and no job of a schedule that skips runs beside another one.
"""

import argparse
import contextlib
import itertools
import json
import os
import secrets
import signal
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from django.test.utils import override_settings

from redis_kit.core import connections
from redis_kit.core.errors import RedisFailure
from redis_kit.queues import Queue
from redis_kit.queues.features.schedules import definition, target
from redis_kit.queues.features.schedules import store as store
from redis_kit.queues.features.schedules.definition import Definition
from redis_kit.queues.features.schedules.store import Schedules
from tests.chaos.queues.support.workers import Fleet, wait_until
from tests.fixtures.process import UNBOUNDED, Server
from tests.queues.support.journal import Journal

COMMAND = ("-m", "django", "rk_worker", "--settings", "tests.queues.support.worker_settings", "--queue-name", "default")
LEASES = {"HEARTBEAT_INTERVAL": 0.5, "WORKER_TIMEOUT": 4.0}
START = 60.0  # seconds
DRAINED = 60.0
TASK = "tests.queues.support.beats.tasks.beat"


@dataclass(frozen=True)
class Plan:
    """What is to be run. Half of the schedules allow jobs beside each other, the others skip ticks."""

    ticks: int
    workers: int = 3
    schedules: int = 8
    every: float = 0.5
    kills: int = 3  # of workers; one more hits the server if there are any
    seed: int = field(default_factory=lambda: secrets.randbelow(1_000_000))

    def given(self) -> list[dict[str, Any]]:
        """Return the arguments of periodic() for each schedule."""
        return [
            {
                "every": self.every,
                "name": f"{'skip' if number % 2 else 'allow'}{number}",
                "args": [f"s{number}"],
                "overlap": "skip" if number % 2 else "allow",
                "catch_up": 1 if number % 2 else 100,
                "kwargs": {"seconds": self.every * 0.6 if number % 2 else 0},
            }
            for number in range(self.schedules)
        ]


@dataclass
class Outcome:
    """What it came to: by id of a job its schedule and tick, and when it was added, began and ended."""

    plan: Plan
    ticks: dict[str, tuple[Definition, int]]
    steps: dict[str, dict[str, list[float]]]
    problems: list[str]
    seconds: float

    def violations(self) -> list[str]:
        """Return all that must not be."""
        return [*self.problems, *self.twice(), *self.missing(), *self.unfinished(), *self.beside()]

    def twice(self) -> Iterator[str]:
        """Yield the ticks that were added more than once."""
        for id, steps in self.steps.items():
            if len(steps["added"]) > 1:
                yield f"{self.named(id)} was added {len(steps['added'])} times"

    def missing(self) -> Iterator[str]:
        """Yield the ticks between the first and the last of a schedule that allows overlaps which nobody added."""
        for name, ticks in self._by_schedule().items():
            chosen = next(each for each, _ in self.ticks.values() if each.name == name)
            if chosen.overlap == "allow":
                expected = range(min(ticks), max(ticks) + 1, chosen.every)
                yield from (f"{name} at {tick} never ran" for tick in expected if tick not in ticks)

    def unfinished(self) -> Iterator[str]:
        """Yield the jobs that were added and never ended."""
        yield from (f"{self.named(id)} has not ended" for id, steps in self.steps.items() if not steps["ended"])

    def beside(self) -> Iterator[str]:
        """Yield the jobs of a schedule that skips which began before another one had ended."""
        for name, ticks in self._by_schedule().items():
            jobs = sorted((min(self.steps[id]["began"] or [0]), id) for id in ticks.values())
            if name.startswith("skip"):
                for (_, before), (began, after) in itertools.pairwise(jobs):
                    if self.steps[before]["ended"] and began < max(self.steps[before]["ended"]):
                        yield f"{self.named(after)} began before {self.named(before)} had ended"

    def lateness(self) -> list[float]:
        """Return by how many ms each tick was added too late, sorted."""
        return sorted(
            min(steps["added"]) * 1000 - self.ticks[id][1] for id, steps in self.steps.items() if steps["added"]
        )

    def named(self, id: str) -> str:
        """Return a tick for a message."""
        return f"{self.ticks[id][0].name} at {self.ticks[id][1]}" if id in self.ticks else f"the unknown job {id}"

    def _by_schedule(self) -> dict[str, dict[int, str]]:
        found: dict[str, dict[int, str]] = defaultdict(dict)
        for id in self.steps:
            if id in self.ticks:
                chosen, tick = self.ticks[id]
                found[chosen.name][tick] = id
        return found

    def __str__(self) -> str:
        late = self.lateness()
        centiles = statistics.quantiles(late, n=100) if len(late) > 1 else [0.0] * 99
        figures = (
            f"late by p50 {centiles[49]:.1f} ms, p99 {centiles[98]:.1f} ms, at most {late[-1] if late else 0:.1f} ms"
        )
        plan = self.plan
        who = f"{plan.workers} workers, {plan.kills} kills, seed {plan.seed}"
        return f"{who}: {len(self.steps)} ticks in {self.seconds:.1f} s; {figures}"


@contextlib.contextmanager
def running(plan: Plan, folder: Path, given: list[dict[str, Any]]) -> Iterator[tuple[Server, Fleet]]:
    """Run a server that keeps its data, and workers with these schedules."""
    with contextlib.ExitStack() as stack:
        server = Server(tcp=True, persistence=True, data_dir=folder / "data", extra_args=UNBOUNDED)
        stack.callback(server.stop)
        kit = {"PREFIX": f"c{secrets.token_hex(4)}", "CONNECTIONS": {"default": server.connection}, "QUEUES": LEASES}
        stack.enter_context(override_settings(REDIS_KIT=kit))
        stack.callback(connections.close)
        environment = {
            "REDIS_KIT": json.dumps(kit),
            "JOURNAL": str(folder / "journal"),
            "MORE_APPS": "tests.queues.support.beats",
            "SCHEDULES": json.dumps(given),
        }
        fleet = Fleet(folder, size=plan.workers, options=("--threads", 4), environment=environment, command=COMMAND)
        stack.callback(fleet.close)
        yield server, fleet


def run(plan: Plan) -> Outcome:
    """Let schedules tick and kill who runs them; then read what was left of it."""
    with tempfile.TemporaryDirectory(prefix="chaos") as name, contextlib.ExitStack() as stack:
        journal, chance, problems = Journal(Path(name) / "journal"), Random(plan.seed), list[str]()
        server, fleet = stack.enter_context(running(plan, Path(name), plan.given()))
        if not wait_until(lambda: len(journal.lines(step="added")) >= plan.schedules, START):
            problems.append("no schedule ticks")
        began, before = time.monotonic(), len(journal.lines(step="added"))
        lasting = plan.ticks / plan.schedules * plan.every
        faults = [*["worker"] * plan.kills, *["server"] * bool(plan.kills)]
        chance.shuffle(faults)
        for fault in faults:
            time.sleep(lasting / (len(faults) + 1))
            if fault == "server":
                server.stop()
                time.sleep(0.3)
                server.start()
            else:
                with fleet.lock:
                    victim = chance.choice(fleet.supervisors)
                for pid in [victim.pid, *victim.children()] if chance.random() < 0.7 else list(victim.children())[:1]:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
        wanted = before + plan.ticks
        if not wait_until(lambda: len(journal.lines(step="added")) >= wanted, lasting + START):
            problems.append(f"only {len(journal.lines(step='added'))} of {wanted} ticks after {lasting + START:.0f} s")
        seconds = time.monotonic() - began
        _stop_ticks()
        if not wait_until(lambda: _is_empty(Queue("default")), DRAINED):
            problems.append(f"the queue holds {Queue('default').counts()}")
        if codes := [code for code in fleet.stop() if code]:
            problems.append(f"workers ended with {codes}")
        steps: dict[str, dict[str, list[float]]] = defaultdict(lambda: {"added": [], "began": [], "ended": []})
        for line in journal.lines():
            if line.step in ("added", "began", "ended"):
                steps[line.name][line.step].append(line.at)
        return Outcome(plan, _ticks(plan, journal), dict(steps), problems, seconds)


def _stop_ticks() -> None:
    """Have no schedule tick any more: the workers stay, to run what was added."""
    schedules = Schedules("all")
    page = schedules.run_flow(store.page(schedules, "names", 0, 1000))
    rows = [(each.name, '{"enabled":false}') for each in page.schedules]
    schedules.run_flow(store.store(schedules, rows))
    time.sleep(3)  # all have looked since


def _is_empty(queue: Queue) -> bool:
    with contextlib.suppress(RedisFailure):
        counts = queue.counts()
        return not (counts.ready or counts.scheduled or counts.running)
    return False


def _ticks(plan: Plan, journal: Journal) -> dict[str, tuple[Definition, int]]:
    """Return all ticks that there may have been, by the ids of their jobs."""
    lines = journal.lines()
    first, last = (round(line.at * 1000) for line in (lines[0], lines[-1]))
    found = {}
    for given in plan.given():
        chosen = definition.made(task=TASK, **given)
        tick = chosen.times.after(first - 5000)
        while tick is not None and tick <= last:
            found[target.job_id("default", chosen.name, tick)] = chosen, tick
            tick = chosen.times.after(tick)
    return found


def idle(schedules: int, workers: int, seconds: float = 20.0) -> str:
    """Return what schedules cost that do not tick, in commands of each worker and in memory."""
    given = [{"every": 86_400, "name": f"daily{number}", "args": ["x"]} for number in range(schedules)]
    with tempfile.TemporaryDirectory(prefix="chaos") as name:
        plan = Plan(0, workers=workers)
        with running(plan, Path(name), []) as (server, fleet), server.client() as client:
            assert wait_until(lambda: len(fleet.working()) >= workers, START)
            time.sleep(3)
            before, without = client.info("memory")["used_memory"], _commands(client, seconds)
            store_all = Schedules("all")
            made = {each["name"]: definition.made(task=TASK, **each).stored() for each in given}
            store_all.run_flow(store.declare(store_all, "v1", made))
            planned = time.monotonic()
            assert wait_until(lambda: client.zcount(store_all.key("due"), 0, time.time() * 1000) == 0, START)
            planned = time.monotonic() - planned
            time.sleep(12)
            with_many = _commands(client, seconds)
            size = client.info("memory")["used_memory"] - before
            fleet.stop()
    each = (with_many - without) / seconds / workers
    return (
        f"{schedules} schedules, {workers} workers: {each:.2f} more commands a second and worker "
        f"({without / seconds / workers:.2f} before); {size / 1e6:.1f} MB; planned in {planned:.1f} s"
    )


def _commands(client: Any, seconds: float) -> int:
    """Return how many commands workers send in a time, those inside scripts not counted."""

    def sent() -> int:
        stats = client.info("commandstats")
        return sum(stats.get(f"cmdstat_{name}", {}).get("calls", 0) for name in ("evalsha", "eval", "blpop"))

    before = sent()
    time.sleep(seconds)
    return sent() - before


def main() -> int:
    """Run it, and print what it came to."""
    import django

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ticks", type=int, nargs="?", default=1000)
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--kills", type=int, default=12)
    parser.add_argument("--schedules", type=int, default=40)
    parser.add_argument("--every", type=float, default=2.0)
    parser.add_argument("--idle", type=int, metavar="SCHEDULES")
    options = parser.parse_args()
    django.setup()
    if options.idle:
        print(idle(options.idle, options.workers))
        return 0
    plan = Plan(options.ticks, options.workers, options.schedules, options.every, options.kills)
    outcome = run(plan)
    found = outcome.violations()
    print("\n".join([str(outcome), *found[:20]]))
    return min(1, len(found))


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    raise SystemExit(main())
