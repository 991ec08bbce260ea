"""Calls through an outbox, while the processes that enqueue, workers, Redis and database connections are killed.

    python -m tests.chaos.queues.outbox_kills 10000 [--seed 7]

Each call whose transaction was committed is delivered, and no other one. ``CHAOS_DATABASE`` names another database than
SQLite, as JSON: an entry of ``DATABASES``. On PostgreSQL its connections are killed, too.
"""

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from tests.chaos.queues.support import history
from tests.chaos.queues.support.database import cut_connections, prepare
from tests.chaos.queues.support.workers import Fleet, wait_until
from tests.fixtures.fork_server import PythonProcess, start_python
from tests.fixtures.process import UNBOUNDED, Server

KINDS = ("producer", "server", "worker", "database")
LEASES = {"HEARTBEAT_INTERVAL": 0.2, "WORKER_TIMEOUT": 1.0}
CALM = (0.5, 2.5)  # seconds between two kills
DOWN = 0.3  # seconds for which the server is down
PATIENCE = 60.0
PRODUCERS = 2
RETRY = 0.05


class Producers:
    """Processes that enqueue. One that was killed is replaced, and goes on where it was."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.processes = [self._new(number) for number in range(PRODUCERS)]

    def _new(self, number: int) -> PythonProcess:
        return start_python(["-m", "tests.chaos.queues.outbox_kills", "--produce", number, self.count])

    def kill_one(self, randomness: random.Random) -> None:
        """Kill one of them, and start another one in its place."""
        number = randomness.randrange(PRODUCERS)
        if self.processes[number].poll() is None:
            self.processes[number].send_signal(signal.SIGKILL)
            self.processes[number].wait()
            self.processes[number] = self._new(number)

    @property
    def at_work(self) -> bool:
        """Tell whether one has calls left."""
        return any(process.poll() is None for process in self.processes)

    def end(self) -> None:
        """Kill what is left."""
        for process in self.processes:
            with suppress(ProcessLookupError):
                process.kill()
            process.wait()


def produce(number: int, count: int) -> None:
    """Enqueue each call in the transaction of its row. One whose transaction failed is enqueued again."""
    import django

    django.setup()
    from django.db import DatabaseError, InterfaceError, connection, transaction

    from tests.app.models import Place
    from tests.chaos.queues.row_tasks import deliver_row

    for call in range(number, count, PRODUCERS):
        while True:
            try:
                if Place.objects.filter(city=str(call)).exists():
                    break
                if call % 10 == 9:
                    with transaction.atomic():
                        deliver_row.enqueue(-call)
                        transaction.set_rollback(True)
                with transaction.atomic():
                    Place.objects.create(city=str(call))
                    deliver_row.enqueue(call)
                break
            except (DatabaseError, InterfaceError):
                connection.close()
                time.sleep(RETRY)


def run(count: int, *, seed: int) -> int:
    """Enqueue this many calls, print what was found, and return the exit code."""
    with tempfile.TemporaryDirectory(prefix="chaos") as name:
        folder = Path(name)
        server = Server(tcp=True, persistence=True, data_dir=folder / "data", extra_args=UNBOUNDED)
        try:
            prepare(folder, server, f"o{seed}", LEASES)
            return _run(folder, server, count, random.Random(seed), seed)
        finally:
            server.stop()


def _run(folder: Path, server: Server, count: int, randomness: random.Random, seed: int) -> int:
    path, began = folder / "history", time.monotonic()
    fleet = Fleet(folder, size=1, options=["--processes", 2, "--threads", 2], environment={history.VARIABLE: str(path)})
    producers, kills = Producers(count), Counter[str]()
    try:
        while producers.at_work:
            time.sleep(randomness.uniform(*CALM))
            kind = KINDS[sum(kills.values()) % len(KINDS)]
            _kill(kind, fleet, server, producers, randomness)
            kills[kind] += 1
        committed = {int(city) for city in _cities()}
        done = wait_until(lambda: _waiting() == 0 and committed <= _delivered(path).keys(), PATIENCE)
    finally:
        producers.end()
        fleet.stop()
        fleet.close()
    from redis_kit.queues import Queue

    delivered = _delivered(path)
    found = [] if done else [f"{_waiting()} calls wait in the outbox."]
    if missing := committed - delivered.keys():
        counts = Queue("default").counts()
        found.append(f"{len(missing)} of {len(committed)} calls were lost: {sorted(missing)[:5]}; {counts}")
    if unknown := delivered.keys() - committed:
        found.append(f"{len(unknown)} calls were never committed: {sorted(unknown)[:5]}")
    if len(committed) != count:
        found.append(f"{len(committed)} of {count} calls were enqueued.")
    twice = sum(times > 1 for times in delivered.values())
    seconds = time.monotonic() - began
    print(f"seed {seed}: {len(committed)} calls committed, kills {dict(kills)}; ran twice: {twice}; {seconds:.1f} s")
    print("\n".join(found) or "Nothing is wrong.", flush=True)
    return bool(found)


def _kill(kind: str, fleet: Fleet, server: Server, producers: Producers, randomness: random.Random) -> None:
    if kind == "producer":
        producers.kill_one(randomness)
    elif kind == "server":
        server.stop()
        time.sleep(DOWN)
        server.start()
    elif kind == "worker":
        with fleet.lock:
            for pid in fleet.supervisors[0].children():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
    else:
        cut_connections()


def _cities() -> list[str]:
    from tests.app.models import Place

    return list(Place.objects.values_list("city", flat=True))


def _waiting() -> int:
    from redis_kit.queues.features.outbox.store import waiting

    return waiting("default")[0]


def _delivered(path: Path) -> Counter[int]:
    return Counter(entry.number for entry in history.read(path))


def main() -> int:
    """Read the arguments and run, or produce."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--produce", type=int, help="work as this producer")
    options = parser.parse_args()
    if options.produce is not None:
        produce(options.produce, options.count)
        return 0
    return run(options.count, seed=options.seed)


if __name__ == "__main__":
    sys.exit(main())
