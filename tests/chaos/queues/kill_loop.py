"""Jobs run while workers and the server are killed; then the checker reads the history.

    python -m benchmarks chaos 100000

The same seed brings the same jobs and the same kinds of kills in the same order.
"""

import contextlib
import json
import secrets
import signal
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from django.test.utils import override_settings

from redis_kit.core import connections
from redis_kit.core.errors import RedisFailure
from redis_kit.queues import Queue, QueueCounts
from redis_kit.queues.inspection import list_workers
from redis_kit.queues.worker.shared import failpoints
from tests.chaos.queues.support import checker, final_state, history, report
from tests.chaos.queues.support.checker import Case
from tests.chaos.queues.support.fault_injector import ROUND, SUPERVISED, Aim, FaultInjector, Kill, Kind
from tests.chaos.queues.support.load import MIX, Load
from tests.chaos.queues.support.workers import COMMAND, Fleet, wait_until
from tests.fixtures.process import UNBOUNDED, Server

DEFAULTS = {"HEARTBEAT_INTERVAL": 2.0, "WORKER_TIMEOUT": 10.0}
QUICK_RETRIES = {"RETRY_BACKOFF": 0.3, "RETRY_BACKOFF_MAX": 0.6}  # seconds: a run lasts for some of them
REACHED = 5.0  # seconds for the last step to come to a failpoint
START = 30.0  # seconds until a worker works
PATIENT = {"CONNECT_TIMEOUT": 2.0, "READ_TIMEOUT": 2.0}  # as in other tests


@dataclass(frozen=True)
class Plan:
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
    seed: int = field(default_factory=lambda: secrets.randbelow(1_000_000))
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


@dataclass(frozen=True)
class Outcome:
    """What it came to."""

    plan: Plan
    case: Case
    violations: list[str]
    seconds: float
    logs: str

    def __str__(self) -> str:
        return f"seed {self.plan.seed}: {report.told(self.case, self.seconds)}"


class Setup:
    """A server that keeps what it said it has, the settings of this process and of the workers, and a folder."""

    def __init__(self, plan: Plan, stack: contextlib.ExitStack) -> None:
        self.plan = plan
        self.folder = plan.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="chaos")))
        data = self.folder / "data"
        self.server = Server(tcp=True, persistence=True, data_dir=data, extra_args=UNBOUNDED)
        stack.callback(self.server.stop)
        self.settings = {
            "PREFIX": f"c{secrets.token_hex(4)}",
            "CONNECTIONS": {"default": self.server.connection},
            "QUEUES": {**QUICK_RETRIES, **plan.leases},
            **PATIENT,
        }
        stack.enter_context(override_settings(REDIS_KIT=self.settings))
        stack.callback(connections.close)
        self.client = stack.enter_context(self.server.client())
        self.queue = Queue("default")
        self.history_file = self.folder / "history"
        self.once = self.folder / "once"

    def environment(self) -> dict[str, str]:
        """Return what tells a worker all that."""
        found = {"REDIS_KIT": json.dumps(self.settings), history.VARIABLE: str(self.history_file)}
        return {**found, "REDIS_KIT_FAILPOINT_ONCE": str(self.once), **self.plan.environment}

    def has_backlog(self) -> bool:
        """Say whether more jobs wait than all threads together can hold."""
        try:
            slots = self.plan.workers * self.plan.processes * self.plan.threads
            return self.queue.counts().ready > slots
        except RedisFailure:
            return True

    def is_done(self, fleet: Fleet) -> bool:
        """Say whether no job waits or runs, and the workers in the registry are those that live, all of them."""
        try:
            counts = self.queue.counts()
            if counts != QueueCounts(0, 0, 0, counts.dead):
                return False
            pids = sorted(worker.pid for worker in list_workers(["default"]))
            wanted = self.plan.workers * (self.plan.processes if self.plan.supervised else 1)
            return len(pids) == wanted and pids == sorted(fleet.working())
        except RedisFailure:
            return False


def run(plan: Plan, *, during: Callable[[FaultInjector], None] | None = None) -> Outcome:
    """Run jobs and kill what runs them, then check the history. All that it starts has ended when it returns."""
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        setup = Setup(plan, stack)
        options = {
            "size": plan.workers,
            "options": plan.options(),
            "command": plan.command,
            "supervised": plan.supervised,
        }
        fleet = Fleet(setup.folder, environment=setup.environment(), **options)
        stack.callback(fleet.close)
        load = Load(plan.jobs, seed=plan.seed, rate=plan.rate, mix=plan.mix, lasting=plan.lasting)
        load.start()
        aim = Aim(plan.kills, plan.supervised, plan.busy)
        injector = FaultInjector(fleet, setup.server, setup.history_file, threads=plan.threads, aim=aim, seed=plan.seed)
        wait_until(setup.history_file.exists, START)
        while len(injector.kills) < plan.most:
            if not load.is_alive() and not setup.has_backlog() and len(injector.kills) >= plan.least:
                break
            time.sleep(injector.chance.uniform(*plan.calm))
            injector.next()
        if during:
            during(injector)
        load.join()
        ended = _end(setup, fleet)
        kills = [*injector.kills, *_own_death(setup, fleet)]
        ids = [sent.id for sent in load.sent if sent.id]
        case = Case(
            sent=load.sent,
            history=history.read(setup.history_file),
            kills=sorted(kills, key=lambda kill: kill.at),
            state=final_state.read(setup.queue, setup.client, ids),
            within=_within(plan),
            lease=plan.leases["WORKER_TIMEOUT"],
        )
        logs = fleet.logs()
    failed = [f"the load failed: {load.error!r}"] if load.error else []
    found = [violation for check in checker.CHECKS for violation in check(case)]
    return Outcome(plan, case, failed + ended + found, time.monotonic() - began, logs)


def _within(plan: Plan) -> dict[str, float]:
    whole = plan.leases["WORKER_TIMEOUT"] + plan.spare
    return {"child": plan.child, "supervisor": whole, "machine": whole}


def _end(setup: Setup, fleet: Fleet) -> list[str]:
    """Wait until all is done and stop the workers; return what was wrong with their ends."""
    found = []
    if failpoints.POINT in setup.plan.environment:
        wait_until(setup.once.exists, REACHED)
    if not wait_until(lambda: setup.is_done(fleet), setup.plan.patience):
        found.append(f"after {setup.plan.patience} s the queue holds {setup.queue.counts()}")
    if codes := [code for code in fleet.stop() if code]:
        found.append(f"workers ended with {codes}")
    if orphans := fleet.orphans(5.0):
        found.append(f"processes {orphans} outlived their supervisors")
    deaths = [supervisor.process.returncode for supervisor in fleet.gone]
    if strange := [code for code in deaths if code != -signal.SIGKILL]:
        found.append(f"workers ended by themselves, with {strange}")
    return found


def _own_death(setup: Setup, fleet: Fleet) -> Sequence[Kill]:
    """Return the death of the process that a failpoint killed."""
    if not setup.once.exists():
        return []
    pid, at = map(int, setup.once.read_text().split())
    supervisor, threads = fleet.find(pid), setup.plan.threads
    if setup.plan.supervised and supervisor:
        with fleet.lock:  # children that came and went between two looks are known by their jobs alone
            known = {one for supervisor in fleet.supervisors + fleet.gone for one in supervisor.known}
        children = supervisor.known - {pid} | {entry.pid for entry in history.read(setup.history_file)} - known
        return [Kill("supervisor", at, at, frozenset(children), threads * setup.plan.processes, pid)]
    return [Kill("child" if setup.plan.supervised else "machine", at, at, frozenset({pid}), threads)]
