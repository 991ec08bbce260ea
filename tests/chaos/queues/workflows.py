"""A large group with a callback, and a long chain, while workers and the server are killed; then the checker reads.

    python -m tests.chaos.queues.workflows 1000 100

The callback runs once, with all results; a step that ended runs again only if its process died before it was recorded.
"""

import argparse
import contextlib
import secrets
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from redis_kit.core.errors import RedisFailure
from redis_kit.queues import Workflow, chain, failures, group, previous
from tests.chaos.queues import kill_loop, tasks
from tests.chaos.queues.support import history, program
from tests.chaos.queues.support.fault_injector import ROUND, SUPERVISED, Aim, FaultInjector, Kill, Kind
from tests.chaos.queues.support.history import Entry
from tests.chaos.queues.support.workers import Fleet, wait_until

CALLBACK, CHAIN = 1_000_000, 2_000_000  # numbers of the callback and of the first step of the chain
LEASES = {"HEARTBEAT_INTERVAL": 0.2, "WORKER_TIMEOUT": 1.0}


@dataclass(frozen=True)
class Plan:
    """The size of both workflows, and the kills. ``least`` are made, or as many as fit in the time they take."""

    steps: int
    length: int
    least: int = 5
    lasting: float = 0.02  # seconds that a step takes
    calm: tuple[float, float] = (0.4, 0.8)
    kills: tuple[Kind, ...] = ROUND
    patience: float = 90.0
    seed: int = field(default_factory=lambda: secrets.randbelow(1_000_000))


@dataclass(frozen=True)
class Outcome:
    """The violations, and figures about the run."""

    plan: Plan
    violations: list[str]
    kills: Sequence[Kill]
    again: int  # steps that ran more than once
    seconds: float
    logs: str

    def __str__(self) -> str:
        kinds = ", ".join(f"{count} {kind}" for kind, count in Counter(kill.kind for kill in self.kills).items())
        text = f"seed {self.plan.seed}: a group of {self.plan.steps} and a chain of {self.plan.length}"
        return f"{text} in {self.seconds:.1f} s; killed: {kinds}; {self.again} steps ran again"


def run(plan: Plan) -> Outcome:
    """Run both workflows, kill, wait for their ends, and check."""
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        setup = kill_loop.Setup(kill_loop.Plan(jobs=0, leases=LEASES, seed=plan.seed), stack)
        options = {"size": 2, "options": ["--threads", 4, "--processes", 2], "supervised": SUPERVISED}
        fleet = Fleet(setup.folder, environment=setup.environment(), command=kill_loop.COMMAND, **options)
        stack.callback(fleet.close)
        workflows = _started(plan)
        aim = Aim(plan.kills, SUPERVISED, 70)
        injector = FaultInjector(fleet, setup.server, setup.history_file, threads=4, aim=aim, seed=plan.seed)
        wait_until(setup.history_file.exists, kill_loop.START)
        while not _over(workflows) and (len(injector.kills) < plan.least or plan.steps > 200):
            time.sleep(injector.chance.uniform(*plan.calm))
            injector.next()
        wait_until(lambda: _over(workflows), plan.patience)
        violations = list(_states(workflows))
        fleet.stop()
        entries, dead = history.read(setup.history_file), {pid for kill in injector.kills for pid in kill.pids}
        logs = fleet.logs()
    violations += check(entries, dead, plan.steps, plan.length)
    again = sum(count > 1 for count in Counter(entry.number for entry in entries if entry.phase == "end").values())
    return Outcome(plan, violations, injector.kills, again, time.monotonic() - began, logs)


def check(entries: Sequence[Entry], dead: set[int], steps: int, length: int) -> Iterator[str]:
    """Yield what must never happen."""
    ends: dict[int, list[Entry]] = defaultdict(list)
    begins: dict[int, list[Entry]] = defaultdict(list)
    for entry in entries:
        (ends if entry.phase == "end" else begins)[entry.number].append(entry)
    for number in [*range(steps), CALLBACK, *range(CHAIN, CHAIN + length)]:
        if not ends[number]:
            yield f"step {number} never ended"
        spared = [entry for entry in begins[number] if entry.pid not in dead]
        if len(spared) > 1:
            yield f"step {number} ran {len(spared)} times in processes that were not killed"
    if ends[CALLBACK] and (early := [n for n in range(steps) if not ends[n] or ends[n][0].at > begins[CALLBACK][0].at]):
        yield f"the callback began before the end of {early[:5]}"
    for number in range(CHAIN + 1, CHAIN + length):
        if begins[number] and (not ends[number - 1] or ends[number - 1][0].at > begins[number][0].at):
            yield f"step {number} of the chain began before the end of the one before"


def _started(plan: Plan) -> list[Workflow]:
    wide = group(tasks.member.step(number, plan.lasting) for number in range(plan.steps))
    numbers = range(CHAIN, CHAIN + plan.length)
    long = chain(tasks.member.step(number, plan.lasting) for number in numbers)
    callback = tasks.gathered.step(CALLBACK, plan.steps, previous, failures)
    return [wide.on_done(callback).enqueue(), long.enqueue()]


def _over(workflows: Sequence[Workflow]) -> bool:
    try:
        return all(workflow.status().state != "running" for workflow in workflows)
    except RedisFailure:
        return False


def _states(workflows: Sequence[Workflow]) -> Iterator[str]:
    for workflow in workflows:
        status = workflow.status()
        if status.state != "successful" or status.successful != status.steps:
            open_steps = [step for step in workflow.steps() if step.state != "successful"]
            yield f"workflow {workflow.id} is {status}; {open_steps[:5]}"


def main() -> int:
    """Run it as a command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("steps", type=int)
    parser.add_argument("length", type=int)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    parser.add_argument("--lasting", type=float, default=0.1)
    given = parser.parse_args()
    outcome = run(Plan(given.steps, given.length, lasting=given.lasting, seed=given.seed))
    print(outcome, *outcome.violations[:20], sep="\n")
    return int(bool(outcome.violations))


if __name__ == "__main__":
    program.run(main)
