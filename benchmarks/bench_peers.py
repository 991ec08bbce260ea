"""Workers of others beside the kit's, in one run: drain, idle start, memory and commands per job."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.workers import counting, drain, starting
from benchmarks.workers.contestant import Contestant, Failed, Filled, Pit
from benchmarks.workers.process import environment, folder
from benchmarks.workers.server import Server, median, on_tcp
from benchmarks.workers.starting import Delays

# Title, module of benchmarks.peers, variant, and the module that has to be installed.
PEERS = (
    ("Celery prefork, acks_late", "celery", "", "celery"),
    ("RQ SimpleWorker", "rq", "", "rq"),
    ("dramatiq, 8 threads", "dramatiq", "", "dramatiq"),
    ("huey, 1 thread (loses jobs)", "huey", "1", "huey"),
    ("huey, 8 threads (loses jobs)", "huey", "8", "huey"),
    ("arq, 10 at once", "arq", "10", "arq"),
    ("arq, 100 at once", "arq", "100", "arq"),
    ("taskiq, list (loses jobs)", "taskiq", "list", "taskiq_redis"),
    ("taskiq, stream", "taskiq", "stream", "taskiq_redis"),
    ("SAQ, 10 at once", "saq", "10", "saq"),
    ("streaq, 16 at once", "streaq", "16", "streaq"),
    ("django-tasks-db, SQLite", "django", "database", "django_tasks_db"),
    ("django-tasks-redis", "django", "streams", "django_tasks_redis"),
    ("threadmill, 8 threads", "django", "threadmill", "threadmill"),
)
KIT = (
    Contestant("kit, tasks without results", "kit", "forgotten-8"),
    Contestant("kit, tasks with results", "kit", "kept-8"),
)
ROUNDS = 3
STARTS = 300  # jobs, for the start of one by an idle worker
COUNTED = 500  # jobs, for commands


class Row(NamedTuple):
    """What is known of one contestant."""

    drained: drain.Result
    start: Delays
    commands: counting.Commands


def run(cases: str = "") -> None:
    """Print a table of all, or of those whose title holds one of these words: ``peers:kit,huey``."""
    contestants = [one for one in (*KIT, *installed()) if any(word in one.title for word in cases.split(","))]
    with folder() as place, on_tcp(one_core=False) as server:
        pits = tried(server, contestants, place)
        drained = [drain.Result(pit.contestant, 1, filled, []) for pit, filled in pits]
        for _ in range(ROUNDS):
            for (pit, filled), result in zip(pits, drained, strict=True):
                with telling():
                    result.rounds.append(drain.drain(pit, filled))
        rows = []
        for (pit, _), result in zip(pits, drained, strict=True):
            with telling():
                rows += [row(pit, result)] if result.rounds else []
        show(rows)


@contextlib.contextmanager
def telling() -> Iterator[None]:
    """Let the others go on where one does not work."""
    try:
        yield
    except Failed as error:
        print(error, file=sys.stderr)


def installed() -> list[Contestant]:
    """Return the peers that the interpreters in PEERS have; say which are missing."""
    pythons = [path for path in os.environ.get("PEERS", "").split(os.pathsep) if path]
    found = []
    for title, peer, variant, module in PEERS:
        python = next((path for path in pythons if _has(path, module)), None)
        if python is None:
            print(f"{title}: not installed, left out. See benchmarks/peers.txt.")
        else:
            found.append(Contestant(title, peer, variant, os.path.abspath(python)))  # noqa: PTH100 - not the link's target
    return found


def _has(python: str, module: str) -> bool:
    command = [python, "-c", f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"]
    return subprocess.run(command, check=False, env=environment(python)).returncode == 0


def tried(server: Server, contestants: list[Contestant], place: Path) -> list[tuple[Pit, Filled]]:
    """Return those that work, each with as many jobs as it does in some seconds."""
    found = []
    for contestant in contestants:
        own = place / f"{contestant.peer}-{contestant.variant}"
        own.mkdir()
        pit = Pit(server, contestant, own)
        with telling():
            with pit.driver() as driver:
                print(f"{contestant.title}: {driver.ask('versions')}", flush=True)
            found.append((pit, pit.fill(drain.trial(pit))))
    print()
    return found


def row(pit: Pit, drained: drain.Result) -> Row:
    """Measure the rest."""
    start = starting.idle_start(pit, STARTS)[1]
    return Row(drained, start, counting.commands(pit, pit.fill(COUNTED), idle=5.0))


def show(rows: list[Row]) -> None:
    """Print the table."""
    pings = median([one.pings.rate for row in rows for one in row.drained.rounds])
    print(f"PING by redis-py: {pings:,.0f} round trips/s; one process of workers each; medians of {ROUNDS} rounds")
    print("by work: processor time of a round trip as a multiple of a job's, client or worker and server")
    print("idle start is from the beginning of the call; commands: sent by clients / run, with those inside scripts\n")
    print(f"{'':32}{'put/s':>8}{'jobs':>8}{'jobs/s':>8}{'x PING':>8}{'by work':>8}{'p50 ms':>8}{'p99 ms':>8}", end="")
    print(f"{'bytes/job':>10}{'commands/job':>15}{'idle/s':>7}")
    for drained, start, commands in sorted(rows, key=lambda row: -row.drained.thrift):
        print(f"{drained.contestant.title:32}{drained.filled.rate:8,.0f}{drained.filled.count:8,}", end="")
        print(f"{drained.rate:8,.0f}{drained.ratio:8.3f}{drained.thrift:8.3f}{start.p50:8.2f}{start.p99:8.2f}", end="")
        print(f"{drained.filled.size:10,.0f}{commands.sent:8.2f} /{commands.run:5.1f}{commands.idle:7.1f}")
        if broken := [one for one in drained.rounds if one.lost or one.repeated]:
            print(f"{'':4}LOST {max(one.lost for one in broken)} jobs, did {max(one.repeated for one in broken)} twice")
    print()
