"""Tasks that are interrupted at each step of a call to the kit; then the checker looks at all jobs.

    python -m tests.chaos queues.interruptions 5000

Some are interrupted at the first place, the second, and so on, where Python could raise an exception and the worker
lets it; others by the worker itself, at random moments. Between them are jobs that nobody interrupts.
"""

import io
import logging
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from threading import Event
from typing import Any

from redis_kit.core import connections
from redis_kit.core.errors import RedisFailure
from redis_kit.core.signals import redis_unavailable
from redis_kit.locks.inspection import held_locks
from redis_kit.queues import Queue
from redis_kit.queues.signals import job_dead
from redis_kit.queues.worker.options import Options
from redis_kit.queues.worker.process import WorkerProcess
from tests.chaos.engine import program
from tests.chaos.engine.program import Outcome, option
from tests.chaos.engine.stage import stage
from tests.chaos.queues import interrupted_tasks
from tests.chaos.queues.support import interruption_bugs
from tests.queues.support import in_process

MOST = 8  # connections of the process: those that leak are soon missing
PATIENCE = 30.0  # seconds in which all is to be done
STUCK = 8.0  # the same where something is to be found


@dataclass(frozen=True)
class Plan(program.Plan):
    """About how many jobs are interrupted."""

    count: int
    bug: str = option("", "put this one in", choices=("", *interruption_bugs.BUGS))


@dataclass
class Notes:
    """What became of a run. ``violations`` is empty where all is as it should be."""

    ended: Counter[str] = field(default_factory=Counter)
    innocents: int = 0
    violations: list[str] = field(default_factory=list)


def run(plan: Plan) -> Outcome:
    """Interrupt jobs on a server of its own, with a bug that was put in or none."""
    options = {"QUEUES": {"HEARTBEAT_INTERVAL": 0.5, "DEAD_LIMIT": 1000}, "MAX_CONNECTIONS": MOST}
    with stage(**options):
        if plan.bug:
            interruption_bugs.BUGS[plan.bug][0]()
        notes = interrupt(plan.count, seed=plan.seed, patience=STUCK if plan.bug else PATIENCE)
    places = ", ".join(f"{name} {number}" for name, number in sorted(interrupted_tasks.steps.items()))
    ends = ", ".join(f"{name} {number}" for name, number in notes.ended.most_common())
    figures = f"places {places}; interrupted jobs: {ends}; {notes.innocents} others done"
    kinds = [f"{number} x {text}" for text, number in Counter(notes.violations).most_common()]
    return Outcome(figures, {"wrong": kinds}, stuck=bool(plan.bug))


def interrupt(count: int, *, seed: int, patience: float) -> Notes:
    """Interrupt about so many jobs, on the server of the settings, and return what became of all."""
    outcome, randomness = Notes(), random.Random(seed)
    opened: list[Any] = []

    def receive(**said: Any) -> None:
        opened.append(said["error"])

    def count_end(reason: str, **_: Any) -> None:
        outcome.ended[reason.partition(":")[0]] += 1

    redis_unavailable.connect(receive)
    job_dead.connect(count_end)
    handler = logging.StreamHandler(io.StringIO())
    interrupted_tasks.log.addHandler(handler)
    interrupted_tasks.log.propagate = interrupted_tasks.log.disabled = False
    interrupted_tasks.done.clear()
    interrupted_tasks.steps.clear()
    launcher = WorkerProcess(Options((interrupted_tasks.NAME,), threads=3, grace=1.0))
    interrupted_tasks.launcher[:] = [launcher]
    try:
        with in_process.working(launcher):
            _run(outcome, count, randomness, patience)
        _check(outcome, opened)
    except RedisFailure as error:
        outcome.violations.append(f"Who looks at the queue gets an error: {error}")
    finally:
        redis_unavailable.disconnect(receive)
        job_dead.disconnect(count_end)
        interrupted_tasks.log.removeHandler(handler)
    return outcome


def _run(outcome: Notes, count: int, randomness: random.Random, patience: float) -> None:
    kinds = [(call, fresh) for call in interrupted_tasks.CALLS for fresh in (True, False)]
    for _ in range(2):  # what the first ones import and send only they do
        for call, fresh in kinds:
            interrupted_tasks.stepped.enqueue(call, fresh, 0, "timeout")  # counts the places
        if not _wait_until_done(outcome, patience):
            return
    counts = {
        (call, fresh): interrupted_tasks.steps[interrupted_tasks.place(call, fresh=fresh)] for call, fresh in kinds
    }
    share = max(1, count // 2 // len(kinds))  # of each kind, as some have a hundred times as many places as others
    chosen = [
        (call, fresh, at)
        for (call, fresh), most in counts.items()
        for at in randomness.sample(range(1, most + 1), min(share, most))
    ]
    randomness.shuffle(chosen)
    numbers = iter(range(10**9))
    for batch in _batches(chosen, 20):
        for call, fresh, at in batch:
            interrupted_tasks.stepped.enqueue(call, fresh, at, randomness.choice(list(interrupted_tasks.ERRORS)))
            interrupted_tasks.innocent.enqueue(call, _counted(outcome, numbers))
        if not _wait_until_done(outcome, patience):
            return
    for _ in range(max(1, (count - len(chosen)) // 20)):
        cancelled = [interrupted_tasks.busy.enqueue() for _ in range(2)]
        for _ in range(18):
            randomness.choice(interrupted_tasks.TIMED).enqueue()
            interrupted_tasks.innocent.enqueue(
                randomness.choice(list(interrupted_tasks.CALLS)), _counted(outcome, numbers)
            )
        interrupted_tasks.innocent_async.enqueue(_counted(outcome, numbers))
        for result in cancelled:
            _cancel(result.id, randomness, patience)
        if not _wait_until_done(outcome, patience):
            return


def _counted(outcome: Notes, numbers: Iterator[int]) -> int:
    outcome.innocents += 1
    return next(numbers)


def _batches(items: list[Any], size: int) -> Iterator[list[Any]]:
    for at in range(0, len(items), size):
        yield items[at : at + size]


def _cancel(id: str, randomness: random.Random, patience: float) -> None:
    end, never = time.monotonic() + patience, Event()
    running = interrupted_tasks.launcher[0]._context.deadlines._limits
    while not any(limit.job == (0, id) for limit in list(running.values())) and time.monotonic() < end:
        never.wait(0.001)
    never.wait(randomness.uniform(0, 0.02))
    interrupted_tasks.launcher[0]._runner.cancel((0, id))


def _wait_until_done(outcome: Notes, patience: float) -> bool:
    end, queue, never = time.monotonic() + patience, Queue(interrupted_tasks.NAME), Event()
    while any((queue.counts().ready, queue.counts().running)):
        if time.monotonic() > end:
            outcome.violations.append(f"Jobs are not done after {patience:g} s: {queue.counts()}.")
            return False
        never.wait(0.01)
    _count(outcome, queue)
    return True


def _count(outcome: Notes, queue: Queue) -> None:
    """Note what the jobs died of, and let them go."""
    for job in queue.peek(1000, state="dead"):
        name, reason = job.payload["task"].rpartition(".")[2], job.reason.partition(":")[0]
        if name.startswith("innocent"):
            outcome.violations.append(f"A job that nobody interrupted failed: {job.reason}")
        elif reason not in ("TaskTimeout", "Cancelled"):
            outcome.violations.append(f"A job that was interrupted failed of something else: {job.reason}")
    queue.purge("dead")


def _check(outcome: Notes, opened: list[Any]) -> None:
    """Add what is wrong."""
    bad, counts = outcome.violations, Queue(interrupted_tasks.NAME).counts()
    if any(counts[:3]):
        bad.append(f"Jobs are left: {counts}.")
    missing = outcome.innocents - len(interrupted_tasks.done)
    if missing:
        bad.append(f"{missing} jobs that nobody interrupted were not done.")
    if opened:
        bad.append(f"The circuit breaker opened: {opened[0]}")
    bad += _leaks()


def _leaks() -> list[str]:
    """Return what is wrong with the connections and the locks."""
    found, client, taken = [], connections.client(), []
    if client.breaker and client.breaker.failures:
        found.append("The circuit breaker has counted failures.")
    try:
        for _ in range(MOST):
            taken.append(client._take())
    except Exception as error:
        found.append(f"Connections are lost, {len(taken)} of {MOST} are left: {error}")
    for connection in taken:
        client._pool.give(connection)
    end, never = time.monotonic() + interrupted_tasks.LEASE + 1, Event()
    while (held := held_locks().locks) and time.monotonic() < end:
        never.wait(0.05)
    return found + [f"Locks are held beyond their leases: {held}"] * bool(held)
