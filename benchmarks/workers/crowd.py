"""Large queues: a million scheduled jobs beside none, many that are overdue at once, and what a job weighs."""

import time
from typing import NamedTuple

from benchmarks.measure import compare
from benchmarks.workers.contestant import Pit
from benchmarks.workers.server import Server, percentile
from redis_kit.queues import Queue

SCHEDULED = 1_000_000
OVERDUE = 100_000
WEIGHED = 100_000
FAR = 86_400.0  # seconds
PATIENCE = 60.0
TASK = "benchmarks.app.tasks.forgotten"


def slowed_by_many() -> dict[str, float]:
    """Return, for enqueue and for claim, by which factor a million scheduled jobs slow it."""
    empty, full = Queue("empty"), Queue("full")
    full.put_many(({"number": number} for number in range(SCHEDULED)), delay=FAR)
    for queue in (empty, full):
        queue.put_many({"number": number} for number in range(20_000))
    things = {
        "put, no job scheduled": lambda: empty.put({"number": 1}),
        f"put, {SCHEDULED:,} scheduled": lambda: full.put({"number": 1}),
        "put with a delay, no job scheduled": lambda: empty.put({"number": 1}, delay=FAR),
        f"put with a delay, {SCHEDULED:,} scheduled": lambda: full.put({"number": 1}, delay=FAR),
        "claim and ack, no job scheduled": lambda: empty.ack(empty.claim()[0]),
        f"claim and ack, {SCHEDULED:,} scheduled": lambda: full.ack(full.claim()[0]),
    }
    found = {}
    names = list(things)
    for few, many in zip(names[::2], names[1::2], strict=True):
        ratios = compare({name: things[name] for name in (few, many)}, base=few, rounds=20, seconds=0.1)
        found[few.split(",")[0]] = 1 / ratios[many]
    return found


class Promoted(NamedTuple):
    """How jobs that were overdue got ready while a worker did them."""

    rate: float  # jobs a second, until all were ready or done
    longest: float  # ms for which one command held the server
    pings: float  # ms, the 99th percentile of round trips meanwhile


def overdue(pit: Pit) -> Promoted:
    """Let a worker find many jobs overdue, as it does when a pause of the queue ends."""
    queue = Queue("default")
    pit.empty()
    with pit.workers(), pit.driver() as driver:
        pit.warm(driver)
        queue.pause()
        calls = ({"task": TASK, "args": [{"number": number}]} for number in range(OVERDUE))
        queue.put_many(calls, delay=0.001)
        while queue.counts().scheduled < OVERDUE:
            time.sleep(0.05)
        time.sleep(0.1)
        with pit.server.longest() as held:
            rate, trip = _promoted(pit.server, queue)
        return Promoted(rate, max(held, default=0.0), trip)


def _promoted(server: Server, queue: Queue) -> tuple[float, float]:
    trips: list[float] = []
    queue.resume()
    began = last = time.perf_counter()
    while (left := queue.counts().scheduled) and last - began < PATIENCE:
        now = time.perf_counter()
        server.client.ping()
        last = time.perf_counter()
        trips.append((last - now) * 1000)
        time.sleep(0.005)
    rate = (OVERDUE - left) / (time.perf_counter() - began)
    return rate, percentile(trips or [0.0], 0.99)


def weight(server: Server, pits: list[Pit]) -> dict[str, float]:
    """Return the bytes of the server's memory that a job takes while it waits."""
    server.flush()
    queue = Queue("weighed")
    queue.put({"number": 0})
    before = server.used()
    queue.put_many({"number": number} for number in range(WEIGHED))
    found = {"a job of Queue.put_many": (server.used() - before) / WEIGHED}
    return found | {f"a call, {pit.contestant.title}": pit.fill(WEIGHED).size for pit in pits}
