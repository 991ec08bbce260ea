"""Jobs are handed over to Celery's broker while workers and the broker are killed, frozen and started again.

    python -m tests.chaos.queues.handovers 10000
    python -m tests.chaos.queues.handovers 10000 --broker rabbitmq

Nothing consumes the messages, so at the end the broker holds the history. Each job must be there. A job may be sent
again only if it was in flight at a fault: its worker was killed before it could tell the queue, or the broker did not
answer.
"""

import argparse
import contextlib
import json
import os
import secrets
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from django.test.utils import override_settings
from kombu import Connection

from redis_kit.core import connections
from redis_kit.queues import Queue, QueueCounts
from redis_kit.queues.inspection import hand_overs
from tests.chaos.queues.support import program, recorded_sink
from tests.chaos.queues.support.workers import Fleet, Supervisor, wait_until
from tests.fixtures.brokers import RabbitMQ
from tests.fixtures.process import UNBOUNDED, Server

# A worker that is killed as a whole may have had nothing to do with the jobs that it held.
OPTIONS = {"HEARTBEAT_INTERVAL": 0.5, "WORKER_TIMEOUT": 3, "MAX_CRASHES": 100}
OF_WORKER = ("rk_worker", "--settings", "tests.chaos.settings")
COMMAND = ("-m", "tests.chaos.queues.support.recorded_sink", *OF_WORKER)
THREADS, WORKERS = 4, 2
CHUNK = 10  # jobs that are due at one time
AWAY = 0.4  # seconds that the broker is away
FROZEN = 6.0  # seconds: longer than a worker waits for it
KINDS, WEIGHTS, MOST = ("child", "worker", "broker", "frozen"), (5, 2, 2, 1), 100_000


@dataclass(frozen=True)
class Plan:
    """What is to be run."""

    jobs: int
    rate: float = 500.0  # jobs a second
    broker: str = "redis"
    calm: tuple[float, float] = (0.5, 1.2)  # seconds between two faults
    faults: tuple[str, ...] | None = None  # in this order, each once; None: any, until all is sent
    command: tuple[str, ...] = COMMAND
    seed: int = field(default_factory=lambda: secrets.randbelow(1_000_000))
    patience: float = 120.0


@dataclass
class Outcome:
    """What it came to."""

    plan: Plan
    sent: Mapping[str, int]  # by id
    in_flight: Mapping[str, int]  # by id: how often the job was in flight at a fault
    wanted: set[str]
    faults: Mapping[str, int]
    left: QueueCounts
    seconds: float

    def violations(self) -> list[str]:
        """Return what must not be."""
        found = [f"job {id} was lost" for id in sorted(self.wanted - set(self.sent))[:10]]
        found += [f"message {id} belongs to no job" for id in sorted(set(self.sent) - self.wanted)[:10]]
        too_often = sorted(id for id, count in self.sent.items() if count - 1 > self.in_flight.get(id, 0))
        found += [f"job {id} was sent again without a fault" for id in too_often[:10]]
        if self.left != QueueCounts(0, 0, 0, 0):
            found.append(f"jobs are left: {self.left}")
        return found

    def __str__(self) -> str:
        twice = sum(count - 1 for count in self.sent.values())
        faults = ", ".join(f"{count} {name}" for name, count in sorted(self.faults.items())) or "no faults"
        return (
            f"seed {self.plan.seed}, {self.plan.broker}: {len(self.wanted)} jobs in {self.seconds:.1f} s; {faults}; "
            f"{twice} messages sent again, of {sum(self.in_flight.values())} that were in flight at a fault"
        )


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
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="handovers", ignore_cleanup_errors=True)))
        server = Server(tcp=True, persistence=True, data_dir=folder / "data", extra_args=UNBOUNDED)
        stack.callback(server.stop)
        broker: Any = RabbitMQ(folder) if kind == "rabbitmq" else RedisBroker(folder)
        stack.callback(lambda: broker.stop())
        app = "tests.queues.support.fleet.app"
        settings = {"CONNECTIONS": {"default": server.connection}, "QUEUES": {**OPTIONS, "CELERY_APP": app}}
        settings |= {"PREFIX": f"h{secrets.token_hex(3)}", "CONNECT_TIMEOUT": 2.0, "READ_TIMEOUT": 2.0}
        stack.enter_context(override_settings(REDIS_KIT=settings))
        stack.callback(connections.close)
        kit, journal = json.dumps(settings), str(folder / "journal")
        own = {"REDIS_KIT": kit, "CELERY_BROKER": broker.url, "JOURNAL": journal}
        own[recorded_sink.VARIABLE] = str(folder / "batches")
        yield Bridge(folder, server, broker, own)


def run(plan: Plan) -> Outcome:
    """Hand jobs over while faults are injected. All that it starts has ended when it returns."""
    random, began = Random(plan.seed), time.monotonic()
    with bridge(plan.broker) as place, contextlib.ExitStack() as stack:
        broker = place.broker
        options, environment = ["--threads", THREADS], place.environment
        fleet = Fleet(place.folder, size=WORKERS, options=options, environment=environment, command=plan.command)
        stack.callback(fleet.close)
        queue = Queue("celery")
        wanted: set[str] = set()
        for start in range(0, plan.jobs, CHUNK):
            calls = [{"task": "far.away", "args": [number], "sink": "celery"} for number in range(start, start + CHUNK)]
            wanted.update(queue.put_many(calls[: plan.jobs - start], delay=2 + start / plan.rate))
        faults: Counter[str] = Counter()
        kills: dict[int, int] = {}  # when processes were killed, by pid
        wait_until(lambda: queue.counts().scheduled < plan.jobs, plan.patience)  # it has begun
        ends = time.monotonic() + plan.patience + plan.jobs / plan.rate
        kinds = iter(plan.faults or random.choices(KINDS, WEIGHTS, k=MOST))
        while any(queue.counts()[:3]) and time.monotonic() < ends and (kind := next(kinds, "")):
            time.sleep(random.uniform(*plan.calm))
            faults[kind] += 1
            inject(kind, random, fleet, broker, kills)
        with contextlib.suppress(AssertionError):
            wait_until(lambda: not any(queue.counts()[:3]), plan.patience)
        left = queue.counts()
        print(hand_overs(["celery"]), file=sys.stderr)
        fleet.close()
        batches = recorded_sink.read(place.folder / "batches")
        in_flight = Counter(id for batch in batches for id in batch.in_flight(kills))
        return Outcome(plan, messages(broker.url), in_flight, wanted, faults, left, time.monotonic() - began)


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
        supervisor: Supervisor = random.choice(fleet.supervisors)
        pids = sorted(supervisor.children())
        for pid in pids if kind == "child" else [supervisor.pid, *pids]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                kills[pid] = time.monotonic_ns()


def main() -> int:
    """Run it from a shell."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("jobs", type=int, nargs="?", default=1000)
    parser.add_argument("--broker", choices=("redis", "rabbitmq"), default="redis")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    given = parser.parse_args()
    outcome = run(Plan(given.jobs, broker=given.broker, seed=given.seed))
    print(outcome)
    for violation in outcome.violations():
        print(violation)
    return int(bool(outcome.violations()))


if __name__ == "__main__":
    program.run(main)
