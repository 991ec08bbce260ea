"""A queue's calls beside a bare round trip, and beside the fewest commands that do the same."""

from collections.abc import Callable
from itertools import count
from typing import Any

import redis

from benchmarks.support.measurement import compare
from benchmarks.support.workers.goals import Goal
from benchmarks.support.workers.server import on_tcp
from redis_kit.queues import Job, Queue, task

PING = "bare: PING"
SHORT: dict[str, Any] = {"rounds": 40, "seconds": 0.03}
BATCH = 100
CALLS = 10_000
WAITING = 100_000  # jobs


def run() -> None:
    """Print the rates of put, of claim and ack, and of all three together, then the goals."""
    for cores, one_core in (("one core", True), ("all cores", False)):
        with on_tcp(one_core=one_core) as server:
            goals = putting(server.client) + taking(server.client)
            lives(server.client)
        for goal in goals:
            print(goal._replace(name=f"{goal.name}, {cores}"))
        print()


def putting(client: redis.Redis) -> list[Goal]:
    """Compare ways to put one job, or many in one call."""
    queue, numbers = Queue("bench"), count()
    loop, calls = f"kit: a loop of {CALLS} task.enqueue", f"kit: task.enqueue_many of {CALLS}"
    calls_without = f"{calls}, without result"
    single, waiting, many = "kit: put", "kit: task.enqueue, without result", f"kit: put_many of {BATCH}"
    things: dict[str, Callable[[], object]] = {
        PING: client.ping,
        "bare: LPUSH": lambda: client.lpush("bench:list", f'{{"n":{next(numbers)}}}'),
        single: lambda: queue.put({"n": next(numbers)}),
        "kit: put, delayed": lambda: queue.put({"n": next(numbers)}, delay=3600),
        waiting: lambda: nothing.enqueue(next(numbers)),
        "kit: task.enqueue": lambda: kept.enqueue(next(numbers)),
        many: lambda: queue.put_many({"n": number} for number in range(BATCH)),
        loop: lambda: [kept.enqueue(number) for number in range(CALLS)],
        calls: lambda: kept.enqueue_many((number,) for number in range(CALLS)),
        calls_without: lambda: nothing.enqueue_many((number,) for number in range(CALLS)),
    }
    print("put")
    worth = {many: BATCH, loop: CALLS, calls: CALLS, calls_without: CALLS}
    # Else all of them would put into a queue of millions of jobs, as many as there were rounds.
    ratios = compare(things, base=PING, worth=worth, before=client.flushall, **SHORT)
    client.flushall()
    return [
        Goal("put one by one, to a PING", ratios[single], ">=", 0.7),
        Goal("enqueue one by one, to a PING", ratios[waiting], ">=", 0.45),
        Goal("enqueue one by one with a result, to a PING", ratios["kit: task.enqueue"], ">=", 0.35),
        Goal(f"put_many of {BATCH}, to a PING", ratios[many], ">=", 5),
        Goal(f"enqueue_many of {CALLS}, to a loop of enqueue", ratios[calls] / ratios[loop], ">=", 10),
    ]


def taking(client: redis.Redis) -> list[Goal]:
    """Compare ways to claim and acknowledge jobs while many are waiting."""
    single, batches, fused = Queue("single"), Queue("batches"), Queue("fused")
    for queue in (single, batches, fused):
        queue.put_many({"n": number} for number in range(WAITING))
    client.lpush("bench:many", *range(WAITING))
    apart, together = f"kit: claim({BATCH}), ack", f"kit: claim({BATCH}, done=those before)"
    hand: list[Job] = []
    things: dict[str, Callable[[], object]] = {
        PING: client.ping,
        "bare: LMOVE, LREM": lambda: taken(client, "bench:many"),
        "kit: claim, ack": lambda: single.ack(*single.claim()),
        apart: lambda: batches.ack(*batches.claim(BATCH)),
        together: lambda: exchange(fused, hand),
    }
    print(f"take and end, with {WAITING:,} jobs waiting")
    ratios = compare(things, base=PING, worth={apart: BATCH, together: BATCH}, **SHORT)
    assert batches.counts().ready
    assert fused.counts().ready
    client.flushall()
    return [
        Goal(f"claim and ack of {BATCH} in two calls, to a PING", ratios[apart], ">=", 4),
        Goal(f"claim and ack of {BATCH} in one call, to a PING", ratios[together], ">=", 4),
    ]


def lives(client: redis.Redis) -> None:
    """Compare put, claim and ack of one job."""
    queue = Queue("lives")
    things: dict[str, Callable[[], object]] = {
        PING: client.ping,
        "bare: LPUSH, LMOVE, LREM": lambda: bare(client),
        "kit: put, claim, ack": lambda: live(queue),
    }
    print("put, take, end, one by one")
    compare(things, base=PING, **SHORT)


@task(store_result=False)
def nothing(number: int) -> None:
    """Do nothing, and store no result."""


@task
def kept(number: int) -> None:
    """Do nothing."""


def bare(client: redis.Redis) -> None:
    """Put, move and remove with lists: survives a dead worker, but has no delay, priority, owner or retry."""
    client.lpush("bench:lives", "1")
    taken(client, "bench:lives")


def taken(client: redis.Redis, name: str) -> None:
    """Take a job and remove it."""
    job = client.lmove(name, "bench:hand", "RIGHT", "LEFT")
    client.lrem("bench:hand", 1, job)


def exchange(queue: Queue, hand: list[Job]) -> None:
    """Acknowledge the claimed jobs and claim others, in one call."""
    hand[:] = queue.claim(BATCH, done=hand)


def live(queue: Queue) -> None:
    """Put a job, claim it and acknowledge it."""
    queue.put({"n": 1})
    queue.ack(*queue.claim())
