"""A server that comes back without its last seconds, or is replaced by a replica that lags, while workers have jobs.

    python -m tests.chaos queues.rollback 20 [--shards 4]

What the server lost is known: the puts that it acknowledged in those seconds. Nothing else may be missing, no job may
stay among the running ones, and none may run again whose claim the server had kept.
"""

import contextlib
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, Literal, NamedTuple

from redis_kit.core.errors import RedisUnavailable
from redis_kit.queues import Queue, QueueCounts
from redis_kit.queues.engine.ids import part_of
from tests.chaos.engine import faults, program
from tests.chaos.engine.program import Outcome
from tests.chaos.engine.stage import stage, wait_until
from tests.chaos.queues import tasks
from tests.chaos.queues.support import history
from tests.chaos.queues.support.executions import SECOND, Run, runs
from tests.chaos.queues.support.workers import COMMAND, Fleet
from tests.fixtures.groups import SentinelGroup
from tests.fixtures.process import UNBOUNDED, Server

How = Literal["file", "replica"]
LAG = 2.0  # seconds that the server loses
TOLD = 1.0  # seconds in which a worker has told the server what is done, on a busy machine
TIMES = (0.02, 0.2)  # seconds that some jobs take
SAMPLE = 0.02  # seconds between two looks at the size of the file
START = 30.0
# No moment at which the machine has no time for a worker looks like its death.
LEASES = {"HEARTBEAT_INTERVAL": 0.5, "WORKER_TIMEOUT": 8.0}
# A heartbeat that finds a suspect, one that confirms it, and the time to find the server and to settle.
STATED = 10.0
# With "everysec" the server may answer up to two seconds before it writes to its file, where the disk is slow. Here it
# writes before it answers, so that the file's size tells what it had promised; the last seconds are cut off by hand.
ARGUMENTS = (*UNBOUNDED, "--auto-aof-rewrite-percentage", "0")
KINDS = ("nothing", "kept", "short", "steady", "unsteady")


class Put(NamedTuple):
    """A job that the server acknowledged: when it was sent, and when the answer was known here (ns)."""

    number: int
    kind: str
    id: str
    sent: int
    at: int


class Loss(NamedTuple):
    """The server forgot what it did from ``cut`` until it ``died``; then there is another state (ns)."""

    cut: int
    died: int


@dataclass(frozen=True)
class Plan(program.Plan):
    """What is to be run."""

    rounds: int = 5
    shards: int = 1
    how: How = "file"
    rate: float = 150.0  # jobs a second, with which about six run at any moment
    seconds: float = 3.0  # of load before each loss, and after the last one
    workers: int = 2
    processes: int = 2
    threads: int = 6
    patience: float = STATED
    kills: bool = False  # a child too, within a second before the server dies
    command: tuple[str, ...] = COMMAND


@dataclass
class Case:
    """All that is known."""

    plan: Plan
    puts: list[Put]
    losses: list[Loss]
    runs: dict[int, list[Run]]
    status: dict[str, str]
    counts: QueueCounts
    settled: float
    logs: str
    killed: set[int]  # pids of children, with which the memory of ends is gone

    def outcome(self) -> Outcome:
        """Return what must not be, and the figures."""
        found = {"lost": [*self.lost()], "stuck": [*self.stuck()], "unexplained": [*self.unexplained()]}
        return Outcome(str(self), found, logs=self.logs, case=self)

    def lost(self) -> Iterator[str]:
        """Yield the jobs that were acknowledged when the server forgot nothing, and are not done."""
        for put in self.puts:
            if not self._forgot(put) and not self._is_done(put):
                yield f"job {put.number} ({put.kind}) was acknowledged and is not done: {self.runs.get(put.number)}"

    def stuck(self) -> Iterator[str]:
        """Yield what is left in the queue."""
        if self.counts != QueueCounts(0, 0, 0, 0):
            yield f"after {self.settled:.1f} s the queue holds {self.counts}"

    def unexplained(self) -> Iterator[str]:
        """Yield the jobs that ran again, though the server had kept either their ends or their claims."""
        for before, after in self.repeats():
            if before.failed or before.pid in self.killed:
                continue
            of = [loss for loss in self.losses if loss.cut - TOLD * SECOND < (before.ended or 0) < loss.died]
            if not of:
                yield f"job {after.number} ran again, and the server had kept its end: {before}"
            elif all(before.begun < loss.cut for loss in of):
                yield f"job {after.number} ran again, and the server had kept its claim: {before}"

    def repeats(self) -> list[tuple[Run, Run]]:
        """Return each execution that was not the first one of its job, behind the one before."""
        return [pair for its in self.runs.values() for pair in pairwise(its)]

    def settled_again(self) -> int:
        """Return how many jobs the workers say to have ended again."""
        return sum(int(count) for count in re.findall(r"lost the outcomes of (\d+) job", self.logs))

    def __str__(self) -> str:
        forgotten = [put for put in self.puts if self._forgot(put)]
        gone = sum(not self._is_done(put) for put in forgotten)
        again = sum(not before.failed for before, _ in self.repeats())
        kills = f" with {len(self.killed)} kills" if self.killed else ""
        return (
            f"{self.plan.how}{kills}: {len(self.losses)} losses of {LAG:g} s, "
            f"{len(self.puts):,} puts acknowledged, {len(forgotten):,} of them in those seconds, {gone:,} of these "
            f"lost; {self.settled_again():,} ended again, "
            f"{again:,} ran again; nothing left {self.settled:.2f} s after the last put"
        )

    def _forgot(self, put: Put) -> bool:
        return any(loss.cut <= put.at and put.sent <= loss.died for loss in self.losses)

    def _is_done(self, put: Put) -> bool:
        ended = any(run.ended and not run.failed for run in self.runs.get(put.number, ()))
        stores = put.kind in ("kept", "steady", "unsteady")
        return ended and (not stores or self.status.get(put.id) == "SUCCESSFUL")


class Load(threading.Thread):
    """Puts jobs of all kinds, and notes which were acknowledged and when."""

    def __init__(self, rate: float, chance: Random) -> None:
        super().__init__(daemon=True)
        self.rate, self.chance = rate, chance
        self.puts: list[Put] = []
        self.over = threading.Event()

    def run(self) -> None:
        """Put until it is over."""
        number = 0
        while not self.over.wait(1 / self.rate):
            number += 1
            kind = self.chance.choice(KINDS)
            more = (self.chance.uniform(*TIMES),) if kind in ("short", "steady") else ()
            with contextlib.suppress(RedisUnavailable):
                sent = time.monotonic_ns()
                id = getattr(tasks, kind).enqueue(number, *more).id
                self.puts.append(Put(number, kind, id, sent, time.monotonic_ns()))


class FileThatIsCut:
    """A server with an append-only file, which is cut to what it was before some seconds when the server dies."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "data"
        self.server = Server(tcp=True, persistence=True, data_dir=self.folder, extra_args=ARGUMENTS)
        self.connection = self.server.connection
        self._sizes: list[tuple[int, int]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def lose(self) -> Loss:
        """Kill the server, cut its file, and start it again."""
        self.server.stop()
        died = time.monotonic_ns()
        cut, size = [one for one in self._sizes if one[0] <= died - LAG * SECOND][-1]
        self._sizes.clear()
        with self._file().open("r+b") as file:
            file.truncate(size)
        self.server.start()
        return Loss(cut, died)

    def stop(self) -> None:
        """End it all."""
        self._over.set()
        self._thread.join()
        self.server.stop()

    def _watch(self) -> None:
        while not self._over.wait(SAMPLE):
            now = time.monotonic_ns()  # what was answered before this moment is in the file
            with contextlib.suppress(OSError):
                self._sizes.append((now, self._file().stat().st_size))

    def _file(self) -> Path:
        return max(self.folder.glob("**/*.incr.aof"))


class ReplicaThatLags:
    """A primary under Sentinels, whose replica takes its place without the last seconds."""

    def __init__(self, folder: Path) -> None:
        self.group = SentinelGroup()
        self.connection = self.group.connection

    def lose(self) -> Loss:
        """Cut the replica off, kill the primary after some seconds, and wait until the replica serves."""
        stale = self.group.replica
        with stale.client() as replica, self.group.primary.client() as primary:
            replica.config_set("masteruser", "nobody")
            replica.config_set("masterauth", "wrong")
            cut = time.monotonic_ns()
            primary.set("cut", cut)
            assert primary.wait(1, 2000), "the replica lags by more than was asked for"  # it has all until this moment
            primary.client_kill_filter(_type="replica")
        time.sleep(LAG)
        self.group.primary.stop()
        died = time.monotonic_ns()
        self.group.fail_over(crash=True)
        with stale.client() as now_primary:
            now_primary.config_set("masteruser", "")
            now_primary.config_set("masterauth", "")
        return Loss(cut, died)

    def stop(self) -> None:
        """End it all."""
        self.group.stop()


SERVERS: dict[How, Callable[[Path], Any]] = {"file": FileThatIsCut, "replica": ReplicaThatLags}


def run(plan: Plan) -> Outcome:
    """Run many rounds of both kinds, and some in which children are killed, too."""
    # A child that had died may be there again: then its lease decides, and the notice that others get before.
    slow = replace(plan, kills=True, patience=STATED + 2 * LEASES["WORKER_TIMEOUT"])
    outcomes = [run_one(each) for each in [*(replace(plan, how=how) for how in SERVERS), slow]]
    found = {kind: [text for each in outcomes for text in each.found[kind]] for kind in outcomes[0].found}
    return Outcome("\n".join(["", *(each.figures for each in outcomes)]), found)


def run_one(plan: Plan) -> Outcome:
    """Run jobs, let the server lose its last seconds, and check the history. All processes have ended on return."""
    queues = {**LEASES, "QUEUE_OPTIONS": {"default": {"SHARDS": plan.shards}}}
    with stage(server=SERVERS[plan.how], QUEUES=queues) as place:
        path = place.folder / "history"
        environment = place.environment(**{history.VARIABLE: str(path), "CHAOS_LOG": "WARNING"})
        options = ["--threads", plan.threads, "--processes", plan.processes]
        fleet = Fleet(place.folder, size=plan.workers, options=options, environment=environment, command=plan.command)
        place.at_the_end(fleet.close)
        load = Load(plan.rate, Random(plan.seed))
        load.start()
        assert wait_until(path.exists, START), fleet.logs()
        losses, killed, chance = [], set(), Random(plan.seed)
        for _ in range(plan.rounds):
            time.sleep(plan.seconds)
            if plan.kills:
                wait_until(fleet.working, START)
                killed.add(child := chance.choice(sorted(fleet.working())))
                faults.kill(child)
                time.sleep(chance.random())
            losses.append(place.server.lose())
        time.sleep(plan.seconds)
        load.over.set()
        load.join()
        return _checked(plan, load.puts, losses, path, fleet, killed).outcome()


def _checked(plan: Plan, puts: list[Put], losses: list[Loss], path: Path, fleet: Fleet, killed: set[int]) -> Case:
    queue, began = Queue("default"), time.monotonic()
    wait_until(lambda: _counts(queue) == QueueCounts(0, 0, 0, 0), plan.patience)
    settled = time.monotonic() - began
    ids = [put.id for put in puts]
    status = {id: found for at in range(0, len(ids), 500) for id, found in _status(queue, ids[at : at + 500])}
    its = runs(history.read(path), ())
    return Case(plan, puts, losses, its, status, queue.counts(), settled, fleet.logs(), killed)


def _counts(queue: Queue) -> QueueCounts | None:
    with contextlib.suppress(RedisUnavailable):
        return queue.counts()
    return None


def _status(queue: Queue, ids: Sequence[str]) -> Iterator[tuple[str, str]]:
    from redis_kit.core.steps import Batch, Call

    def ask() -> Any:
        of = {id: Queue(part_of(queue.name, id) or queue.name) for id in ids}
        return (yield Batch([Call("HGET", of[id].key(f"result:{id}"), "status") for id in ids]))

    for id, found in zip(ids, queue.run_flow(ask()), strict=True):
        if found:
            yield id, found.decode()
