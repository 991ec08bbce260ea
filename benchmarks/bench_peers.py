"""Workers of other packages beside the kit's, in one run: drain, idle start, memory and commands per job."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.support.workers import command_counts, drain, latency
from benchmarks.support.workers.latency import Delays
from benchmarks.support.workers.processes import environment, folder
from benchmarks.support.workers.server import Server, median, on_tcp
from benchmarks.support.workers.testbed import Failed, Filled, Setup, TestBed

# Title, module of benchmarks.support.peers, variant, and the module that has to be installed.
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
    Setup("kit, tasks without results", "kit", "forgotten-8"),
    Setup("kit, tasks with results", "kit", "kept-8"),
)
ROUNDS = 3
STARTS = 300  # jobs, for the start of one by an idle worker
COUNTED = 500  # jobs, for commands


class Row(NamedTuple):
    """The results of one setup."""

    drained: drain.Result
    start: Delays
    commands: command_counts.Commands


def run(cases: str = "") -> None:
    """Print a table of all setups, or of those with one of these words in their title: ``peers:kit,huey``."""
    setups = [setup for setup in (*KIT, *installed()) if any(word in setup.title for word in cases.split(","))]
    if not setups:
        sys.exit(f"No title of a setup has one of these words: {cases}.")
    with folder() as place, on_tcp(one_core=False) as server:
        beds = tried(server, setups, place)
        drained = [drain.Result(bed.setup, 1, filled, []) for bed, filled in beds]
        for _ in range(ROUNDS):
            for (bed, filled), result in zip(beds, drained, strict=True):
                with errors_printed():
                    result.rounds.append(drain.drain(bed, filled))
        rows = []
        for (bed, _), result in zip(beds, drained, strict=True):
            with errors_printed():
                rows += [row(bed, result)] if result.rounds else []
        show(rows)


@contextlib.contextmanager
def errors_printed() -> Iterator[None]:
    """Print an error instead of raising it, so that the other setups still run."""
    try:
        yield
    except Failed as error:
        print(error, file=sys.stderr)


def installed() -> list[Setup]:
    """Return the peers that the interpreters in PEERS have installed; print the missing ones."""
    pythons = [path for path in os.environ.get("PEERS", "").split(os.pathsep) if path]
    setups = []
    for title, peer, variant, module in PEERS:
        python = next((path for path in pythons if _has(path, module)), None)
        if python is None:
            print(f"{title}: not installed, left out. See benchmarks/peers.txt.")
        else:
            setups.append(Setup(title, peer, variant, os.path.abspath(python)))  # noqa: PTH100 - not the link's target
    return setups


def _has(python: str, module: str) -> bool:
    command = [python, "-c", f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"]
    return subprocess.run(command, check=False, env=environment(python)).returncode == 0


def tried(server: Server, setups: list[Setup], place: Path) -> list[tuple[TestBed, Filled]]:
    """Return the setups that work, each with a queue that takes some seconds to drain."""
    beds = []
    for setup in setups:
        own = place / f"{setup.peer}-{setup.variant}"
        own.mkdir()
        bed = TestBed(server, setup, own)
        with errors_printed():
            with bed.driver() as driver:
                print(f"{setup.title}: {driver.ask('versions')}", flush=True)
            beds.append((bed, bed.fill(drain.trial(bed))))
    print()
    return beds


def row(bed: TestBed, drained: drain.Result) -> Row:
    """Measure idle start and commands, and return the row."""
    start = latency.idle_start(bed, STARTS)[1]
    return Row(drained, start, command_counts.commands(bed, bed.fill(COUNTED), idle=5.0))


def show(rows: list[Row]) -> None:
    """Print the table."""
    pings = median([each.pings.rate for row in rows for each in row.drained.rounds])
    print(f"PING by redis-py: {pings:,.0f} round trips/s; one process of workers each; medians of {ROUNDS} rounds")
    print("by work: processor time of a round trip as a multiple of a job's, client or worker and server")
    print("idle start is from the beginning of the call; commands: sent by clients / run, with those inside scripts\n")
    print(f"{'':32}{'put/s':>8}{'jobs':>8}{'jobs/s':>8}{'x PING':>8}{'by work':>8}{'p50 ms':>8}{'p99 ms':>8}", end="")
    print(f"{'bytes/job':>10}{'commands/job':>15}{'idle/s':>7}")
    for drained, start, commands in sorted(rows, key=lambda row: -row.drained.thrift):
        print(f"{drained.setup.title:32}{drained.filled.rate:8,.0f}{drained.filled.count:8,}", end="")
        print(f"{drained.rate:8,.0f}{drained.ratio:8.3f}{drained.thrift:8.3f}{start.p50:8.2f}{start.p99:8.2f}", end="")
        print(f"{drained.filled.size:10,.0f}{commands.sent:8.2f} /{commands.run:5.1f}{commands.idle:7.1f}")
        if broken := [each for each in drained.rounds if each.lost or each.repeated]:
            lost, repeated = max(each.lost for each in broken), max(each.repeated for each in broken)
            print(f"{'':4}LOST {lost} jobs, did {repeated} twice")
    print()
