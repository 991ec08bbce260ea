"""Jobs run while workers and the server are killed; then the checker reads the history.

    python -m tests.chaos queues.kill_loop 1000
    python -m benchmarks chaos 100000             # and a job that takes six leases

The same seed brings the same jobs and the same kinds of kills in the same order.
"""

import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from redis_kit.core.errors import RedisFailure
from redis_kit.queues import Queue, QueueCounts
from redis_kit.queues.inspection import list_workers
from tests.chaos.engine import program
from tests.chaos.engine.program import Outcome
from tests.chaos.engine.stage import Stage, stage, wait_until
from tests.chaos.queues.support import checker, final_state, history, report
from tests.chaos.queues.support.checker import Case
from tests.chaos.queues.support.fault_injector import ROUND, SUPERVISED, Aim, FaultInjector, Kill, Kind
from tests.chaos.queues.support.load import MIX, Load
from tests.chaos.queues.support.workers import COMMAND, Fleet
from tests.fixtures import failpoints

DEFAULTS = {"HEARTBEAT_INTERVAL": 2.0, "WORKER_TIMEOUT": 10.0}
QUICK_RETRIES = {"RETRY_BACKOFF": 0.3, "RETRY_BACKOFF_MAX": 0.6}  # seconds: a run lasts for some of them
REACHED = 5.0  # seconds for the last step to come to a failpoint
START = 30.0  # seconds until a worker works


@dataclass(frozen=True)
class Plan(program.Plan):
    """What is to be run."""

    jobs: int
    rate: float | None = None  # jobs a second; None: as fast as the workers follow
    mix: dict[str, int] = field(default_factory=lambda: dict(MIX))
    lasting: float = 60.0  # seconds that a job of this kind takes
    workers: int = 2
    processes: int = 2
    threads: int = 4
    kills: tuple[Kind, ...] = ROUND
    busy: int = 50  # percent of the kills that hit a process in the middle of a job
    least: int = 0  # kills, though the load is over
    most: int = 1_000_000
    calm: tuple[float, float] = (0.9, 1.5)  # seconds between two of them
    leases: dict[str, float] = field(default_factory=lambda: dict(DEFAULTS))
    environment: dict[str, str] = field(default_factory=dict)
    command: tuple[str, ...] = COMMAND
    child: float = 1.0  # seconds until a job of a killed child begins again
    spare: float = 2.0  # the same beyond the lease, for a worker that dies as a whole
    patience: float = 60.0  # seconds for all to be done, when all is sent and nobody is killed any more
    keep: Path | None = None  # a folder for the history and the logs, else they are deleted

    def options(self) -> list[object]:
        """Return the options of a worker."""
        return ["--threads", self.threads, *(["--processes", self.processes] if self.supervised else [])]

    @property
    def supervised(self) -> bool:
        """Say whether workers consist of a supervisor and children."""
        return SUPERVISED and self.command == COMMAND


class Scene:
    """A queue on a stage, the workers that run its jobs, and what kills them."""

    def __init__(self, plan: Plan, place: Stage) -> None:
        self.plan, self.queue = plan, Queue("default")
        self.history_file, self.once = place.folder / "history", place.folder / "once"
        variables = {history.VARIABLE: str(self.history_file), "REDIS_KIT_FAILPOINT_ONCE": str(self.once)}
        self.fleet = Fleet(
            place.folder,
            environment=place.environment(**{**variables, **plan.environment}),
            size=plan.workers,
            options=plan.options(),
            command=plan.command,
            supervised=plan.supervised,
        )
        place.at_the_end(self.fleet.close)
        aim = Aim(plan.kills, plan.supervised, plan.busy)
        self.injector = FaultInjector(
            self.fleet, place.server, self.history_file, threads=plan.threads, aim=aim, seed=plan.seed
        )

    def kill(self, is_over: Callable[[], bool]) -> None:
        """Wait until jobs run, and kill one thing after another, until it is over and the least was killed."""
        wait_until(self.history_file.exists, START)
        while len(self.injector.kills) < self.plan.most:
            if is_over() and len(self.injector.kills) >= self.plan.least:
                break
            time.sleep(self.injector.chance.uniform(*self.plan.calm))
            self.injector.next()

    def has_backlog(self) -> bool:
        """Say whether more jobs wait than all threads together can hold."""
        try:
            slots = self.plan.workers * self.plan.processes * self.plan.threads
            return self.queue.counts().ready > slots
        except RedisFailure:
            return True

    def is_done(self) -> bool:
        """Say whether no job waits or runs, and the workers in the registry are those that live, all of them."""
        try:
            counts = self.queue.counts()
            if counts != QueueCounts(0, 0, 0, counts.dead):
                return False
            pids = sorted(worker.pid for worker in list_workers(["default"]))
            wanted = self.plan.workers * (self.plan.processes if self.plan.supervised else 1)
            return len(pids) == wanted and pids == sorted(self.fleet.working())
        except RedisFailure:
            return False


def run(plan: Plan, *, during: Callable[[FaultInjector], None] | None = None) -> Outcome:
    """Run jobs and kill what runs them, then check the history. All that it starts has ended when it returns."""
    began = time.monotonic()
    with stage("kept", keep=plan.keep, QUEUES={**QUICK_RETRIES, **plan.leases}) as place:
        scene = Scene(plan, place)
        load = Load(plan.jobs, seed=plan.seed, rate=plan.rate, mix=plan.mix, lasting=plan.lasting)
        load.start()
        scene.kill(lambda: not load.is_alive() and not scene.has_backlog())
        if during:
            during(scene.injector)
        load.join()
        ended = _end(scene)
        kills = [*scene.injector.kills, *_own_death(scene)]
        ids = [sent.id for sent in load.sent if sent.id]
        case = Case(
            sent=load.sent,
            history=history.read(scene.history_file),
            kills=sorted(kills, key=lambda kill: kill.at),
            state=final_state.read(scene.queue, place.enter(place.server.client()), ids),
            within=_within(plan),
            lease=plan.leases["WORKER_TIMEOUT"],
        )
        logs = scene.fleet.logs()
    failed = [f"the load failed: {load.error!r}"] if load.error else []
    found = {check.__name__: list(check(case)) for check in checker.CHECKS}
    figures = report.told(case, time.monotonic() - began)
    return Outcome(figures, {**found, "ended wrongly": failed + ended}, logs=logs, case=case)


def _within(plan: Plan) -> dict[str, float]:
    whole = plan.leases["WORKER_TIMEOUT"] + plan.spare
    return {"child": plan.child, "supervisor": whole, "machine": whole}


def _end(scene: Scene) -> list[str]:
    """Wait until all is done and stop the workers; return what was wrong with their ends."""
    found, fleet = [], scene.fleet
    if failpoints.POINT in scene.plan.environment:
        wait_until(scene.once.exists, REACHED)
    if not wait_until(lambda: scene.is_done(), scene.plan.patience):
        found.append(f"after {scene.plan.patience} s the queue holds {scene.queue.counts()}")
    if codes := [code for code in fleet.stop() if code]:
        found.append(f"workers ended with {codes}")
    if orphans := fleet.orphans(5.0):
        found.append(f"processes {orphans} outlived their supervisors")
    deaths = [supervisor.process.returncode for supervisor in fleet.gone]
    if strange := [code for code in deaths if code != -signal.SIGKILL]:
        found.append(f"workers ended by themselves, with {strange}")
    return found


def _own_death(scene: Scene) -> Sequence[Kill]:
    """Return the death of the process that a failpoint killed."""
    if not scene.once.exists():
        return []
    pid, at = map(int, scene.once.read_text().split())
    fleet, threads = scene.fleet, scene.plan.threads
    supervisor = fleet.find(pid)
    if scene.plan.supervised and supervisor:
        with fleet.lock:  # children that came and went between two looks are known by their jobs alone
            known = {one for supervisor in fleet.supervisors + fleet.gone for one in supervisor.known}
        children = supervisor.known - {pid} | {entry.pid for entry in history.read(scene.history_file)} - known
        return [Kill("supervisor", at, at, frozenset(children), threads * scene.plan.processes, pid)]
    return [Kill("child" if scene.plan.supervised else "machine", at, at, frozenset({pid}), threads)]
