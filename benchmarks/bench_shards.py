"""A queue of one, 8 and 16 shards, drained by two worker processes: on a Cluster of three nodes, and on one server.

``python -m benchmarks shards 30000`` puts that many jobs for each drain. All nodes share the cores of this machine with
the workers. So the busiest node's processor time for a job says more than the rate: it bounds nodes with own cores.
"""

import json
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, NamedTuple

from benchmarks.support.job_log import FOLDER, JobLog
from benchmarks.support.measurement import configure, describe
from benchmarks.support.workers.goals import Goal
from benchmarks.support.workers.processes import environment, folder, kit, running
from benchmarks.support.workers.server import median

SHARDS = (1, 8, 16)
ROUNDS = 3
EDGE = 0.1  # of the jobs, at the beginning and at the end, that are not measured
LIMIT = 120.0  # seconds
WORKER = [sys.executable, "-m", "django", "rk_worker", "--queue-name", "mail", "--processes", "2"]


class Drained(NamedTuple):
    """Jobs a second, and the processor time for a job, us: of the busiest node and of all nodes."""

    rate: float
    busiest: float
    nodes: float


def run(jobs: int = 10_000) -> None:
    """Print a line for each number of shards, drained in turns, then the goals."""
    configure()
    from tests.fixtures.groups import Cluster
    from tests.fixtures.process import Server

    goals: list[Goal] = []
    for title, make in (("three nodes", Cluster), ("one server", lambda: Server(tcp=True))):
        with ExitStack() as stack:
            server, place = make(), stack.enter_context(folder())
            stack.callback(server.stop)
            goals += _compared(title, server, place, jobs)
    for goal in goals:
        print(goal)
    print()


def _compared(title: str, server: Any, place: Path, jobs: int) -> list[Goal]:
    nodes = getattr(server, "nodes", [server])
    with nodes[0].client(decode_responses=False) as client:
        describe(client, f"({title}) and two worker processes on all of them")
    rounds: dict[int, list[Drained]] = {shards: [] for shards in SHARDS}
    for _ in range(ROUNDS):
        for shards, results in rounds.items():
            results.append(_drained(server, nodes, place, shards, jobs))
    print(f"{title:24}{'jobs/s':>10}{'to one':>8}{'lowest':>10}{'highest':>10}{'busiest us':>12}{'nodes us':>10}")
    medians = {shards: _median(results) for shards, results in rounds.items()}
    for shards, (rate, busiest, all_nodes) in medians.items():
        rates = [drained.rate for drained in rounds[shards]]
        print(f"{f'{shards} shards':24}{rate:10,.0f}{rate / medians[1].rate:8.2f}{min(rates):10,.0f}", end="")
        print(f"{max(rates):10,.0f}{busiest:12.1f}{all_nodes:10.1f}")
    print()
    if len(nodes) == 1:
        return [Goal("drain of 8 shards on one server, to one shard", medians[8].rate / medians[1].rate, ">=", 0.7)]
    bound = medians[1].busiest / medians[8].busiest
    return [
        Goal("drain of 8 shards on three nodes, to one shard", medians[8].rate / medians[1].rate, ">=", 1.5),
        Goal("the same, bound by the busiest node", bound, ">=", 1.5),
    ]


def _median(results: list[Drained]) -> Drained:
    return Drained(*(median(list(values)) for values in zip(*results, strict=True)))


def _drained(server: Any, nodes: list[Any], place: Path, shards: int, jobs: int) -> Drained:
    options = {"IMPORTS": ["benchmarks.support.app.tasks"], "QUEUE_OPTIONS": {"mail": {"SHARDS": shards}}}
    settings = {"CONNECTIONS": {"default": server.connection}, "READ_TIMEOUT": 5, "QUEUES": options}
    server.flush()
    _fill(settings, jobs)
    log = JobLog(Path(mkdtemp(dir=place)))
    more = {"BENCH_KIT": json.dumps(settings), FOLDER: str(log.folder)}
    env = environment(kit(), DJANGO_SETTINGS_MODULE="benchmarks.support.app.settings", **more)
    with running([WORKER], env=env, log=place / "log"):
        _wait(lambda: log.collect() >= jobs * EDGE)
        begun, before = len(log.notes), _processor_times(nodes)
        _wait(lambda: log.collect() >= jobs * (1 - EDGE))
        spent = [after - at for after, at in zip(_processor_times(nodes), before, strict=True)]
        count = len(log.notes) - begun
        _wait(lambda: log.collect() >= jobs)
    if len({number for number, _ in log.notes}) != jobs or len(log.notes) != jobs:
        raise SystemExit(f"{jobs} jobs were put, and {len(log.notes)} ran.")
    times = log.times()
    first, last = int(jobs * EDGE), int(jobs * (1 - EDGE))
    rate = (last - first) / (times[last] - times[first]) * 1e9
    return Drained(rate, max(spent) / count * 1e6, sum(spent) / count * 1e6)


def _fill(settings: dict[str, Any], jobs: int) -> None:
    from django.test.utils import override_settings

    with override_settings(REDIS_KIT=settings):
        from benchmarks.support.app.tasks import forgotten

        task = forgotten.using(queue_name="mail")
        for number in range(jobs):
            task.enqueue({"number": number, "to": "someone@example.org", "kind": "welcome"})


def _wait(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT
    while not done():
        if time.monotonic() > deadline:
            raise SystemExit(f"The workers did not drain the queue within {LIMIT:g} s.")
        time.sleep(0.01)


def _processor_times(nodes: list[Any]) -> list[float]:
    times = []
    for node in nodes:
        with node.client() as client:
            info = client.info("cpu")
        times.append(info["used_cpu_user"] + info["used_cpu_sys"])
    return times
