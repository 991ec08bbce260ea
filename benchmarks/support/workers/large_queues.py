"""Large queues: a million scheduled jobs beside none, many overdue jobs at once, and the memory of a job."""

import time
from typing import NamedTuple

from benchmarks.support.measurement import compare
from benchmarks.support.workers.server import Server, percentile
from benchmarks.support.workers.testbed import TestBed
from redis_kit.queues import Queue

SCHEDULED = 1_000_000
OVERDUE = 100_000
WEIGHED = 100_000
FAR = 86_400.0  # seconds
PATIENCE = 60.0
TASK = "benchmarks.support.app.tasks.forgotten"


def slowed_by_many() -> dict[str, float]:
    """Return the factor by which a million scheduled jobs slow put and claim."""
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
    factors = {}
    names = list(things)
    for few, many in zip(names[::2], names[1::2], strict=True):
        ratios = compare({name: things[name] for name in (few, many)}, base=few, rounds=20, seconds=0.1)
        factors[few.split(",")[0]] = 1 / ratios[many]
    return factors


class Promoted(NamedTuple):
    """The promotion of overdue jobs while a worker runs them."""

    rate: float  # jobs a second, until all were ready or done
    longest: float  # ms for which one command held the server
    pings: float  # ms, the 99th percentile of round trips at the same time


def overdue(bed: TestBed) -> Promoted:
    """Resume a queue with many overdue jobs, and measure their promotion."""
    queue = Queue("default")
    bed.empty()
    with bed.workers(), bed.driver() as driver:
        bed.warm(driver)
        queue.pause()
        calls = ({"task": TASK, "args": [{"number": number}]} for number in range(OVERDUE))
        queue.put_many(calls, delay=0.001)
        while queue.counts().scheduled < OVERDUE:
            time.sleep(0.05)
        time.sleep(0.1)
        with bed.server.longest() as held:
            rate, trip = _promoted(bed.server, queue)
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


def weight(server: Server, beds: list[TestBed]) -> dict[str, float]:
    """Return the bytes of the server's memory per waiting job."""
    server.flush()
    queue = Queue("weighed")
    queue.put({"number": 0})
    before = server.used()
    queue.put_many({"number": number} for number in range(WEIGHED))
    sizes = {"a job of Queue.put_many": (server.used() - before) / WEIGHED}
    return sizes | {f"a call, {bed.setup.title}": bed.fill(WEIGHED).size for bed in beds}
