"""Where the jobs of a queue are: in that queue alone, unless a feature spreads them over several parts."""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import TypeVar

from redis_kit.core.flow import Flow
from redis_kit.core.primitive import Primitive
from redis_kit.queues.engine import claim
from redis_kit.queues.engine.claim import Claimed
from redis_kit.queues.engine.feature import has, provided
from redis_kit.queues.engine.job import Job
from redis_kit.queues.engine.unique import UniqueKey

Result = TypeVar("Result")
OfOne = Callable[[Primitive], Flow[Result]]
UpTo = Callable[[Primitive, int | None], Flow[int]]
Put = Callable[[Primitive, list[tuple[str, bytes]]], Flow[list[str]]]


class Spread:
    """Each queue is its only part. A feature may bring a subclass, and its parts are queues of their own."""

    def names(self, queue: str) -> tuple[str, ...]:
        """Return the names of the parts that get jobs."""
        return (queue,)

    def place(self, queue: str, *, lane: str = "", key: UniqueKey | None = None, id: str = "") -> str:
        """Return the name of the part for a new job, "" for a queue with one part; ``id`` if the caller chose it."""
        return ""

    def part(self, queue: Primitive, name: str) -> Primitive:
        """Return a part by its name; "" is the queue."""
        return queue

    def existing(self, queues: Iterable[str]) -> Flow[dict[str, list[str]]]:
        """Return the names of all parts of queues: those that get jobs, and others that were ever used."""
        yield from ()
        return {queue: [queue] for queue in queues}

    def older(self, queues: Iterable[str], *, using: str = "default") -> list[str]:
        """Return the parts of queues that get no more jobs and may have some."""
        return []

    def each(self, queue: Primitive, flow: OfOne[Result]) -> Flow[list[Result]]:
        """Carry out a flow for each part, side by side."""
        return [(yield from flow(queue))]

    def until(self, queue: Primitive, limit: int | None, flow: UpTo) -> Flow[int]:
        """Carry out a flow for parts until it has changed ``limit`` jobs; return how many it has."""
        return flow(queue, limit)

    def of_id(self, queue: Primitive, id: str, flow: OfOne[Result]) -> Flow[Result]:
        """Carry out a flow for the part that has a job, and return its result."""
        return flow(queue)

    def of_job(self, queue: Primitive, job: Job) -> Primitive:
        """Return the part from which a job was claimed."""
        return queue

    def put_many(self, queue: Primitive, jobs: list[tuple[str, bytes]], lane: str, put: Put) -> Flow[list[str]]:
        """Add new jobs by this flow, those with a lane to one part; return their ids."""
        return put(queue, jobs)

    def claim(self, queue: Primitive, limit: int, worker: str | None, done: Sequence[Job]) -> Flow[Claimed]:
        """Acknowledge jobs and claim others."""
        return claim.claim(queue, limit, worker, done=done)

    def ack(self, queue: Primitive, jobs: Sequence[Job]) -> Flow[list[Job]]:
        """Acknowledge jobs; return those whose claim was lost."""
        return claim.ack(queue, jobs)


@cache
def spread() -> Spread:
    """Return how jobs are spread."""
    found: Spread = provided("spread")() if has("spread") else Spread()
    return found
