"""Calls through an outbox, while the processes that enqueue, workers, Redis and database connections are killed.

    python -m tests.chaos queues.outbox_kills 10000

Each call whose transaction was committed is delivered, and no other one. ``TEST_DATABASE`` names another database than
SQLite, as JSON: an entry of ``DATABASES``. On PostgreSQL its connections are killed, too.
"""

import random
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from django.db import DatabaseError, InterfaceError, OperationalError, connection, transaction

from redis_kit.queues import Queue
from redis_kit.queues.features.outbox.transport import waiting
from tests.app.models import Place
from tests.chaos.engine import program
from tests.chaos.engine.crew import Crew
from tests.chaos.engine.faults import Faults, in_turn, kill, restart
from tests.chaos.engine.program import Outcome
from tests.chaos.engine.stage import create_tables, stage, wait_until
from tests.chaos.queues.row_tasks import deliver_row
from tests.chaos.queues.support import history
from tests.chaos.queues.support.workers import Fleet

LEASES = {"HEARTBEAT_INTERVAL": 0.2, "WORKER_TIMEOUT": 1.0, "IMPORTS": ["tests.chaos.queues.row_tasks"]}
CALM = (0.5, 2.5)  # seconds between two kills
DOWN = 0.3  # seconds for which the server is down
PATIENCE = 60.0
PRODUCERS = 2
RETRY = 0.05


@dataclass(frozen=True)
class Plan(program.Plan):
    """How many calls are enqueued."""

    count: int


def produce(number: int, count: int) -> None:
    """Enqueue each call in the transaction of its row. One whose transaction failed is enqueued again."""
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


def run(plan: Plan) -> Outcome:
    """Enqueue the calls while all is killed that is on their way; then compare."""
    create_tables(Place)
    with stage("kept", QUEUES=LEASES) as place:
        chance, path = random.Random(plan.seed), place.folder / "history"
        environment = place.environment(**{history.VARIABLE: str(path)})
        fleet = Fleet(place.folder, size=1, options=["--processes", 2, "--threads", 2], environment=environment)
        place.at_the_end(fleet.close)
        starts = {f"producer {n}": lambda n=n: place.start(produce, n, plan.count) for n in range(PRODUCERS)}
        producers = Crew(starts)
        place.at_the_end(producers.end)

        def kill_workers() -> None:
            with fleet.lock:
                kill(*fleet.supervisors[0].children())

        kinds = {
            "producer": lambda: producers.replace(chance.choice([*starts])),
            "server": lambda: restart(place.server, DOWN),
            "worker": kill_workers,
            "database": cut_connections,
        }
        faults = Faults(kinds, in_turn(kinds), chance=chance, calm=CALM)
        while producers.are_at_work():
            faults.next()
        committed = {int(city) for city in Place.objects.values_list("city", flat=True)}
        wait_until(lambda: waiting("default")[0] == 0 and committed <= _delivered(path).keys(), PATIENCE)
        fleet.stop()
        delivered, left, counts = _delivered(path), waiting("default")[0], Queue("default").counts()
    found = {
        "lost": [f"call {number} was lost; {counts}" for number in sorted(committed - delivered.keys())],
        "unknown": [f"call {number} was never committed" for number in sorted(delivered.keys() - committed)],
        "not enqueued": [f"only {len(committed)} calls were"] if len(committed) != plan.count else [],
        "left": [f"{left} calls wait in the outbox"] if left else [],
    }
    twice = sum(times > 1 for times in delivered.values())
    return Outcome(f"{len(committed)} calls committed; {faults}; ran twice: {twice}", found)


def cut_connections() -> None:
    """End all other connections, as a restart of the database does. SQLite has none."""
    if connection.vendor == "postgresql":
        with suppress(OperationalError), connection.cursor() as cursor:
            others = "pid <> pg_backend_pid() AND datname = current_database()"
            cursor.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}")  # noqa: S608


def _delivered(path: Path) -> Counter[int]:
    return Counter(entry.number for entry in history.read(path))
