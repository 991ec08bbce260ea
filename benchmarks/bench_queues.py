"""A job's way through a queue beside bare commands: one round trip for put, two for claim and ack."""

from itertools import count

import redis

from benchmarks.measure import compare, site
from redis_kit.queues import Queue, task


def run() -> None:
    """Print the rates of putting, and of whole lives of jobs."""
    with site() as client:
        queue, numbers = Queue("bench"), count()
        print("put")
        compare(
            {
                "bare: LPUSH": lambda: client.lpush("bench:list", f'{{"n":{next(numbers)}}}'),
                "kit: Queue.put": lambda: queue.put({"n": next(numbers)}),
                "kit: Queue.put, delayed": lambda: queue.put({"n": next(numbers)}, delay=3600),
                "kit: task.enqueue, without result": lambda: nothing.enqueue(next(numbers)),
                "kit: task.enqueue": lambda: kept.enqueue(next(numbers)),
            },
            base="bare: LPUSH",
        )
        lives = Queue("lives")
        print("put, claim, ack")
        compare(
            {
                "bare: LPUSH, LMOVE, LREM": lambda: bare(client),
                "kit: put, claim, ack": lambda: live(lives),
            },
            base="bare: LPUSH, LMOVE, LREM",
        )
        many = Queue("many")
        many.put_many(range(100_000))
        print("claim, ack, with 100,000 jobs waiting")
        client.lpush("bench:many", *range(100_000))
        compare(
            {
                "bare: LMOVE, LREM": lambda: taken(client, "bench:many"),
                "kit: claim, ack": lambda: end(many),
            },
            base="bare: LMOVE, LREM",
        )


@task(store_result=False)
def nothing(number: int) -> None:
    """Do nothing, and leave nothing behind."""


@task
def kept(number: int) -> None:
    """Do nothing."""


def bare(client: redis.Redis) -> None:
    """The least that survives a dead worker: a list, and one of jobs in hand; no delay, priority, owner or retry."""
    client.lpush("bench:lives", "1")
    taken(client, "bench:lives")


def taken(client: redis.Redis, name: str) -> None:
    """Take a job and end it."""
    job = client.lmove(name, "bench:hand", "RIGHT", "LEFT")
    client.lrem("bench:hand", 1, job)


def live(queue: Queue) -> None:
    """Put a job, take it, end it."""
    queue.put({"n": 1})
    end(queue)


def end(queue: Queue) -> None:
    """Take a job and end it."""
    queue.ack(queue.claim()[0])
