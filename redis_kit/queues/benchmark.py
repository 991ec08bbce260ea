"""The operations of queues that ``rk_bench`` measures."""

from collections.abc import Iterator
from functools import partial

from redis_kit.core.component import Operation
from redis_kit.queues.queue import Queue

MANY = 100


def operations(using: str) -> Iterator[Operation]:
    """Yield the cycle of one job and that of 100 at once. Three round trips each."""
    queue = Queue("queue", using=using)

    def cycle(count: int) -> None:
        queue.put_many([{"number": number} for number in range(count)])
        queue.ack(*queue.claim(count))

    yield Operation("put, claim and acknowledge a job", partial(cycle, 1))
    yield Operation(f"put, claim and acknowledge {MANY} jobs", partial(cycle, MANY))
