"""The way to Celery's broker: hand-overs a second, and the lateness of delayed calls, with their goals.

python -m benchmarks celery
python -m benchmarks celery:lateness
"""

import contextlib
import json
import os
import random
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import django
import redis
from django.conf import settings

from benchmarks.support.workers import cpu_time
from benchmarks.support.workers.goals import Goal, show_delays
from benchmarks.support.workers.latency import delays
from benchmarks.support.workers.server import median

DUE, SENT, ROUNDS = 10_000, 1000, 3  # jobs that are due at once, and messages that one thread sends
WAITING, CALLS, WITHIN, AHEAD = 100_000, 1000, 15.0, 3.0  # calls that wait, and those due in the next seconds
CHUNK, PATIENCE = 500, 120.0
PARTS = ("handovers", "lateness")
SEED = 20131  # for equal times in each run
THREADS = 8


def run(cases: str = "") -> None:
    """Print the figures of all cases, or the named ones, as in ``celery:lateness``, then the goals."""
    os.environ.setdefault("CELERY_BROKER", "memory://")
    if not settings.configured:
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
        django.setup()
    goals: list[Goal] = []
    for case in (handovers, lateness):
        if not cases or case.__name__ in cases.split(","):
            goals += case()
    for goal in goals:
        print(goal)
    print()


def handovers() -> list[Goal]:
    """Jobs that are due at once, beside the same messages sent by one thread, one after the other."""
    goals = []
    print(f"{f'{DUE:,} due jobs, {THREADS} threads of one process':40}{'jobs/s':>9}{'us/job':>9}{'one sender/s':>14}")
    for kind in ("redis", "rabbitmq") if shutil.which("rabbitmq-server") else ("redis",):
        rounds = [_drained(kind) for _ in range(ROUNDS)]
        rate, work, bare = (median(list(values)) for values in zip(*rounds, strict=True))
        print(f"{kind:40}{rate:9,.0f}{work:9.0f}{bare:14,.0f}")
        ratio = median([drained / bare for drained, _, bare in rounds])
        goals.append(Goal(f"hand-overs to {kind}, to one sender", ratio, ">=", 1.4))
    print()
    return goals


def _drained(kind: str) -> tuple[float, float, float]:
    """Return hand-overs a second, the processor time of one in us, and messages a second of one sender."""
    from redis_kit.queues import Queue
    from redis_kit.queues.features.celery.broker import Publisher
    from redis_kit.queues.features.celery.stored_message import TaskCall
    from tests.chaos.queues.handovers import bridge
    from tests.queues.support import fleet

    with bridge(kind) as place:
        fleet.connect(place.broker.url)
        publisher = Publisher(fleet.app)
        publisher.prepare()
        began = time.perf_counter()
        for number in range(SENT):
            publisher.publish(TaskCall("far.away", [number], {}, f"bare{number}", {}))
        bare = SENT / (time.perf_counter() - began)
        publisher.close()
        queue = Queue("celery")
        for start in range(0, DUE, CHUNK):
            queue.put_many([_call(number) for number in range(start, start + CHUNK)])
        with _worker(place) as worker:
            moments = []
            for left in (DUE * 0.95, 0):  # it has begun, and it is done
                _until(lambda left=left: queue.counts().ready + queue.counts().running <= left)
                moments.append((time.perf_counter(), cpu_time.seconds(worker.working()), queue.counts().ready))
        (first, used_first, _), (last, used_last, _) = moments
        return DUE * 0.95 / (last - first), (used_last - used_first) / (DUE * 0.95) * 1e6, bare


def lateness() -> list[Goal]:
    """Calls of a DelayedTask, from the moment when they are due to their arrival at the broker."""
    from redis_kit.queues import Queue
    from tests.chaos.queues.handovers import bridge
    from tests.queues.support import fleet

    with bridge("redis") as place, _worker(place) as worker:
        fleet.connect(place.broker.url)
        queue, arrived = Queue("celery"), {}
        Thread(target=_receive, args=(place.broker, arrived), daemon=True).start()
        warm = [fleet.delayed.apply_async(("x",), countdown=1.1).id for _ in range(CHUNK)]
        _until(lambda: arrived.keys() >= set(warm))
        before = _memory(worker.working())
        for start in range(0, WAITING, CHUNK):
            queue.put_many([_call(number) for number in range(start, start + CHUNK)], delay=3600.0)
        moments = random.Random(SEED)
        calls = [
            fleet.delayed.apply_async(("x",), countdown=AHEAD + moments.random() * WITHIN).id for _ in range(CALLS)
        ]
        due = {job.id: job.due for id in calls if (job := queue.get(id))}
        _until(lambda: arrived.keys() >= set(calls))
        late = delays([(arrived[id] - due[id]) * 1000 for id in due])
        grown = (_memory(worker.working()) - before) / 2**20
    show_delays(f"lateness of {len(due):,} calls in {WITHIN:g} s beside {WAITING:,} that wait, ms", [late])
    print(f"memory of the worker with no call waiting: {before / 2**20:.0f} MiB; grown by {grown:.1f} MiB\n")
    return [
        Goal("lateness at the broker, longest ms", late.longest, "<=", 50),
        Goal(f"MiB by which a worker grows with {WAITING:,} calls", grown, "<=", 5),
    ]


def _call(number: int) -> dict[str, Any]:
    return {"task": "far.away", "args": [number], "sink": "celery"}


@contextlib.contextmanager
def _worker(place: Any) -> Iterator[Any]:
    from tests.chaos.queues.handovers import COMMAND
    from tests.chaos.queues.support.workers import Fleet

    fleet = Fleet(place.folder, size=1, options=["--threads", THREADS], environment=place.environment, command=COMMAND)
    try:
        _until(lambda: "works on" in fleet.logs() or fleet.working())
        yield fleet
    finally:
        fleet.close()


def _receive(broker: Any, arrived: dict[str, float]) -> None:
    """Note when messages arrive, until the broker ends."""
    with contextlib.suppress(redis.ConnectionError), redis.Redis.from_url(broker.url) as client:
        while True:
            if message := client.brpop(["celery"], timeout=1):
                moment = time.time()
                arrived[json.loads(message[1])["headers"]["id"]] = moment


def _memory(pids: set[int]) -> int:
    """Return the resident memory of processes in bytes."""
    sizes = [int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids]
    return sum(sizes) * os.sysconf("SC_PAGESIZE")


def _until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(f"The worker did not do its part within {PATIENCE:g} s.")
        time.sleep(0.005)
