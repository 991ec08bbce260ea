"""A large group with a callback, and a long chain, while workers and the server are killed; then the checker reads.

    python -m tests.chaos queues.workflows 1000 100

The callback runs once, with all results; a step that ended runs again only if its process died before it was recorded.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from redis_kit.core.errors import RedisFailure
from redis_kit.queues import Workflow, chain, failures, group, previous
from tests.chaos.engine import program
from tests.chaos.engine.program import Outcome
from tests.chaos.engine.stage import stage, wait_until
from tests.chaos.queues import kill_loop, tasks
from tests.chaos.queues.support import history
from tests.chaos.queues.support.history import Entry

CALLBACK, CHAIN = 1_000_000, 2_000_000  # numbers of the callback and of the first step of the chain
LEASES = {"HEARTBEAT_INTERVAL": 0.2, "WORKER_TIMEOUT": 1.0}
CRASHES = {"MAX_CRASHES": 100}  # a step that was killed alone three times would be dead


@dataclass(frozen=True)
class Plan(program.Plan):
    """The size of both workflows, and the kills. ``least`` are made, or as many as fit in the time they take."""

    steps: int
    length: int
    lasting: float = 0.1  # seconds that a step takes
    least: int = 5
    calm: tuple[float, float] = (0.4, 0.8)
    patience: float = 90.0


def run(plan: Plan) -> Outcome:
    """Run both workflows, kill, wait for their ends, and check."""
    with stage("kept", QUEUES={**kill_loop.QUICK_RETRIES, **LEASES, **CRASHES}) as place:
        most = 1_000_000 if plan.steps > 200 else plan.least
        how = {"busy": 70, "most": most, "calm": plan.calm}
        scene = kill_loop.Scene(kill_loop.Plan(jobs=0, leases=LEASES, seed=plan.seed, **how), place)
        workflows = _started(plan)
        scene.kill(lambda: _over(workflows))
        wait_until(lambda: _over(workflows), plan.patience)
        states = list(_states(workflows))
        scene.fleet.stop()
        entries, kills = history.read(scene.history_file), scene.injector.kills
        logs = scene.fleet.logs()
    found = list(check(entries, {pid for kill in kills for pid in kill.pids}, plan.steps, plan.length))
    again = sum(count > 1 for count in Counter(entry.number for entry in entries if entry.phase == "end").values())
    kinds = ", ".join(f"{count} {kind}" for kind, count in Counter(kill.kind for kill in kills).items())
    figures = f"a group of {plan.steps} and a chain of {plan.length}; killed: {kinds}; {again} steps ran again"
    return Outcome(figures, {"not done": states, "wrong": found}, logs=logs, kills=kills)


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
