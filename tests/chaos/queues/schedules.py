"""Ticks of schedules while workers and the server are killed, and what they cost.

    python -m tests.chaos queues.schedules 1000 --workers 16 --kills 12
    python -m tests.chaos queues.schedules 1000 --workers 16 --kills 0      # how late ticks are
    python -m tests.chaos queues.schedules --idle 10000 --workers 4         # what schedules cost that do not tick

Each tick is to be added once and to run, whoever dies, and no job of a schedule that skips runs beside another one.
"""

import contextlib
import itertools
import json
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from redis_kit.core.errors import RedisFailure
from redis_kit.queues import Queue
from redis_kit.queues.features.schedules import definition, store, target
from redis_kit.queues.features.schedules.definition import Definition
from redis_kit.queues.features.schedules.store import Schedules
from tests.chaos.engine import program
from tests.chaos.engine.faults import Faults, kill, restart
from tests.chaos.engine.program import Outcome, option
from tests.chaos.engine.stage import Stage, stage, wait_until
from tests.chaos.queues.support.workers import Fleet
from tests.queues.support.journal import Journal

COMMAND = ("-m", "django", "rk_worker", "--settings", "tests.queues.support.worker_settings", "--queue-name", "default")
LEASES = {"HEARTBEAT_INTERVAL": 0.5, "WORKER_TIMEOUT": 4.0}
START = 60.0  # seconds
DRAINED = 60.0
TASK = "tests.queues.support.beats.tasks.beat"


@dataclass(frozen=True)
class Plan(program.Plan):
    """What is to be run. Half of the schedules allow jobs beside each other, the others skip ticks."""

    ticks: int = 1000
    workers: int = 16
    schedules: int = 40
    every: float = option(2.0, "seconds between two ticks")
    kills: int = option(12, "of workers; one more hits the server if there are any")
    idle: int = option(0, "measure what so many schedules cost that do not tick")

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
class Case:
    """All that is known: by id of a job its schedule and tick, and when it was added, began and ended."""

    plan: Plan
    ticks: dict[str, tuple[Definition, int]]
    steps: dict[str, dict[str, list[float]]]
    problems: list[str]

    def outcome(self) -> Outcome:
        """Return what must not be, and the figures."""
        checks = {"lost": self.missing, "doubled": self.twice, "unfinished": self.unfinished, "beside": self.beside}
        found = {"problems": self.problems, **{kind: list(check()) for kind, check in checks.items()}}
        return Outcome(str(self), found, case=self)

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
        return f"{plan.workers} workers, {plan.kills} kills: {len(self.steps)} ticks; {figures}"


@contextlib.contextmanager
def running(plan: Plan, given: list[dict[str, Any]]) -> Iterator[tuple[Stage, Fleet, Journal]]:
    """Run a server that keeps its data, and workers with these schedules."""
    with stage("kept", QUEUES=LEASES) as place:
        journal = Journal(place.folder / "journal")
        more = {"JOURNAL": str(journal.path), "SCHEDULES": json.dumps(given), "MORE_APPS": "tests.queues.support.beats"}
        environment = place.environment(**more)
        options = {"options": ("--threads", 4), "environment": environment, "command": COMMAND}
        fleet = Fleet(place.folder, size=plan.workers, **options)
        place.at_the_end(fleet.close)
        yield place, fleet, journal


def run(plan: Plan) -> Outcome:
    """Let schedules tick and kill who runs them; then read what was left of it."""
    if plan.idle:
        return Outcome(idle(plan.idle, plan.workers), {})
    chance, problems = Random(plan.seed), list[str]()
    with running(plan, plan.given()) as (place, fleet, journal):
        if not wait_until(lambda: len(journal.lines(step="added")) >= plan.schedules, START):
            problems.append("no schedule ticks")
        wanted = len(journal.lines(step="added")) + plan.ticks
        lasting = plan.ticks / plan.schedules * plan.every

        def kill_worker() -> None:
            with fleet.lock:
                victim = chance.choice(fleet.supervisors)
            kill(*([victim.pid, *victim.children()] if chance.random() < 0.7 else list(victim.children())[:1]))

        order = [*["worker"] * plan.kills, *["server"] * bool(plan.kills)]
        chance.shuffle(order)
        kinds = {"worker": kill_worker, "server": lambda: restart(place.server, 0.3)}
        faults = Faults(kinds, order, chance=chance, calm=(lasting / (len(order) + 1),) * 2)
        while faults.next():
            pass
        if not wait_until(lambda: len(journal.lines(step="added")) >= wanted, lasting + START):
            problems.append(f"only {len(journal.lines(step='added'))} of {wanted} ticks after {lasting + START:.0f} s")
        _stop_ticks()
        if not wait_until(lambda: _is_empty(Queue("default")), DRAINED):
            problems.append(f"the queue holds {Queue('default').counts()}")
        if codes := [code for code in fleet.stop() if code]:
            problems.append(f"workers ended with {codes}")
        steps: dict[str, dict[str, list[float]]] = defaultdict(lambda: {"added": [], "began": [], "ended": []})
        for line in journal.lines():
            if line.step in ("added", "began", "ended"):
                steps[line.name][line.step].append(line.at)
        return Case(plan, _ticks(plan, journal), dict(steps), problems).outcome()


def _stop_ticks() -> None:
    """Have no schedule tick any more: the workers stay, to run what was added."""
    schedules = Schedules("all")
    page = schedules.run_flow(store.page("names", 0, 1000))
    rows = [(each.name, '{"enabled":false}') for each in page.schedules]
    schedules.run_flow(store.store(rows))
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
        tick = chosen.after(first - 5000)
        while tick is not None and tick <= last:
            found[target.job_id("default", chosen.name, tick)] = chosen, tick
            tick = chosen.after(tick)
    return found


def idle(schedules: int, workers: int, seconds: float = 20.0) -> str:
    """Return what schedules cost that do not tick, in commands of each worker and in memory."""
    given = [{"every": 86_400, "name": f"daily{number}", "args": ["x"]} for number in range(schedules)]
    with running(Plan(0, workers=workers), []) as (place, fleet, _), place.server.client() as client:
        assert wait_until(lambda: len(fleet.working()) >= workers, START)
        time.sleep(3)
        before, without = client.info("memory")["used_memory"], _commands(client, seconds)
        store_all = Schedules("all")
        made = {each["name"]: definition.made(task=TASK, **each).stored() for each in given}
        store_all.run_flow(store.declare("v1", made))
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
