"""Jobs are handed over to Celery's broker while workers and the broker are killed, frozen and started again.

    python -m tests.chaos queues.handovers 10000
    python -m tests.chaos queues.handovers 10000 --broker rabbitmq

Nothing consumes the messages, so at the end the broker holds the history. Each job must be there. A job may be sent
again only if it was in flight at a fault: its worker was killed before it could tell the queue, or the broker did not
answer.
"""

import contextlib
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from kombu import Connection

from redis_kit.queues import Queue, QueueCounts
from redis_kit.queues.inspection import hand_overs
from tests.chaos.engine import faults, program
from tests.chaos.engine.program import Outcome, option
from tests.chaos.engine.stage import SETTINGS, stage, wait_until
from tests.chaos.queues.support import recorded_sink
from tests.chaos.queues.support.workers import Fleet
from tests.fixtures.brokers import RabbitMQ
from tests.fixtures.process import UNBOUNDED, Server

# A worker that is killed as a whole may have had nothing to do with the jobs that it held.
OPTIONS = {"HEARTBEAT_INTERVAL": 0.5, "WORKER_TIMEOUT": 3, "MAX_CRASHES": 100}
OF_WORKER = ("rk_worker", "--settings", SETTINGS)
COMMAND = ("-m", "tests.chaos.queues.support.recorded_sink", *OF_WORKER)
THREADS, WORKERS = 4, 2
CHUNK = 10  # jobs that are due at one time
AWAY = 0.4  # seconds that the broker is away
FROZEN = 6.0  # seconds: longer than a worker waits for it
KINDS = {"child": 5, "worker": 2, "broker": 2, "frozen": 1}


@dataclass(frozen=True)
class Plan(program.Plan):
    """What is to be run."""

    jobs: int = 1000
    rate: float = 500.0  # jobs a second
    broker: str = option("redis", "of Celery", choices=("redis", "rabbitmq"))
    calm: tuple[float, float] = (0.5, 1.2)  # seconds between two faults
    faults: tuple[str, ...] | None = None  # in this order, each once; None: any, until all is sent
    command: tuple[str, ...] = COMMAND
    patience: float = 120.0


def violations(sent: Mapping[str, int], in_flight: Mapping[str, int], wanted: set[str]) -> dict[str, list[str]]:
    """Return what must not be, by its kind. Both mappings count by the ids of jobs."""
    too_often = sorted(id for id, count in sent.items() if count - 1 > in_flight.get(id, 0))
    return {
        "lost": [f"job {id} was lost" for id in sorted(wanted - set(sent))],
        "unknown": [f"message {id} belongs to no job" for id in sorted(set(sent) - wanted)],
        "doubled": [f"job {id} was sent again without a fault" for id in too_often],
    }


class RedisBroker:
    """Redis as a broker, which keeps what it has answered."""

    def __init__(self, folder: Path) -> None:
        self.server = Server(tcp=True, persistence=True, data_dir=folder / "broker", extra_args=UNBOUNDED)
        self.url = f"redis://127.0.0.1:{self.server.port}/0"

    def stop(self) -> None:
        self.server.stop()

    def start(self) -> None:
        self.server.start()

    def signal(self, number: int) -> None:
        self.server.freeze() if number == signal.SIGSTOP else self.server.thaw()


def messages(url: str) -> Counter[str]:
    """Take all messages from the broker, and return how often each id was sent."""
    found: Counter[str] = Counter()
    with Connection(url) as connection:
        channel = connection.default_channel
        with contextlib.suppress(channel.connection.client.channel_errors):
            while message := channel.basic_get("celery", no_ack=True):
                found[message.headers["id"]] += 1
    return found


@dataclass
class Bridge:
    """A server, a broker of Celery, and what workers find in their environment."""

    folder: Path
    server: Server
    broker: Any
    environment: dict[str, str]


@contextlib.contextmanager
def bridge(kind: str) -> Iterator[Bridge]:
    """Start the servers, and have this process use them. All has ended at the end of the block."""
    with stage("kept", QUEUES={**OPTIONS, "CELERY_APP": "tests.queues.support.fleet.app"}) as place:
        broker: Any = RabbitMQ(place.folder) if kind == "rabbitmq" else RedisBroker(place.folder)
        place.at_the_end(broker.stop)
        own = {"CELERY_BROKER": broker.url, "JOURNAL": str(place.folder / "journal")}
        own[recorded_sink.VARIABLE] = str(place.folder / "batches")
        yield Bridge(place.folder, place.server, broker, place.environment(**own))


def run(plan: Plan) -> Outcome:
    """Hand jobs over while faults are injected. All that it starts has ended when it returns."""
    random = Random(plan.seed)
    with bridge(plan.broker) as place, contextlib.ExitStack() as stack:
        options = {"options": ["--threads", THREADS], "environment": place.environment, "command": plan.command}
        fleet = Fleet(place.folder, size=WORKERS, **options)
        stack.callback(fleet.close)
        queue, wanted = Queue("celery"), set[str]()
        for start in range(0, plan.jobs, CHUNK):
            calls = [{"task": "far.away", "args": [number], "sink": "celery"} for number in range(start, start + CHUNK)]
            wanted.update(queue.put_many(calls[: plan.jobs - start], delay=2 + start / plan.rate))
        kills: dict[int, int] = {}  # when processes were killed, by pid
        kinds = {kind: lambda kind=kind: inject(kind, random, fleet, place.broker, kills) for kind in KINDS}
        order = faults.weighted(random, KINDS) if plan.faults is None else plan.faults
        injected = faults.Faults(kinds, order, chance=random, calm=plan.calm)
        wait_until(lambda: queue.counts().scheduled < plan.jobs, plan.patience)  # it has begun
        ends = time.monotonic() + plan.patience + plan.jobs / plan.rate
        while any(queue.counts()[:3]) and time.monotonic() < ends and injected.next():
            pass
        wait_until(lambda: not any(queue.counts()[:3]), plan.patience)
        left = queue.counts()
        print(hand_overs(["celery"]), file=sys.stderr)
        fleet.close()
        batches = recorded_sink.read(place.folder / "batches")
        sent, in_flight = messages(place.broker.url), Counter(id for each in batches for id in each.in_flight(kills))
    found = violations(sent, in_flight, wanted)
    found["left"] = [] if left == QueueCounts(0, 0, 0, 0) else [f"jobs are left: {left}"]
    twice = (
        f"{sum(count - 1 for count in sent.values())} messages sent again, of {in_flight.total()} in flight at a fault"
    )
    return Outcome(f"{plan.broker}: {len(wanted)} jobs; {injected}; {twice}", found)


def inject(kind: str, random: Random, fleet: Fleet, broker: Any, kills: dict[int, int]) -> None:
    """Kill or freeze something."""
    if kind == "broker":
        broker.stop()
        time.sleep(AWAY)
        broker.start()
    elif kind == "frozen":
        broker.signal(signal.SIGSTOP)
        time.sleep(random.choice((AWAY, FROZEN)))
        broker.signal(signal.SIGCONT)
    else:
        supervisor = random.choice(fleet.supervisors)
        pids = sorted(supervisor.children())
        for pid in pids if kind == "child" else [supervisor.pid, *pids]:
            faults.kill(pid)
            kills.setdefault(pid, time.monotonic_ns())
