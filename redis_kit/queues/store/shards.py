"""Flows over all shards of a queue. For a queue without shards they are the flow itself."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from random import sample
from typing import ClassVar, TypeVar

from redis_kit.core.errors import RedisFailure
from redis_kit.core.flow import Flow
from redis_kit.core.gather import gather
from redis_kit.core.primitive import Primitive
from redis_kit.core.steps import Call
from redis_kit.queues.jobs.job import Job, QueueCounts
from redis_kit.queues.jobs.shard import may_have_shards, shard_names, shard_of_id
from redis_kit.queues.keys import names_key
from redis_kit.queues.settings import QueueSettings, whole
from redis_kit.queues.store import claim, liveness

Result = TypeVar("Result")
OfOne = Callable[[Primitive], Flow[Result]]


class Shard(Primitive):
    """One shard, or a queue without others. With ``spread`` it stands for all shards of the queue of its name."""

    component, settings = "queues", QueueSettings
    spread: ClassVar[bool] = False


def is_spread(queue: Primitive) -> bool:
    """Return whether a queue may have several shards."""
    return isinstance(queue, Shard) and queue.spread and may_have_shards(queue.name)


def shard(queue: Primitive, name: str) -> Primitive:
    """Return a shard of a queue by its name."""
    return Shard(name, using=queue.using) if name else queue


def existing(queues: Iterable[str]) -> Flow[dict[str, list[str]]]:
    """Return the names of all shards of queues: those that get jobs, and others that were ever used.

    One round trip if the settings name SHARDS for one of them, else none.
    """
    names = {queue: list(shard_names(queue)) for queue in queues}
    if any(map(may_have_shards, names)):
        for name in sorted(member.decode("utf-8", "replace") for member in (yield Call("SMEMBERS", names_key()))):
            of = names.get(whole(name), [name])
            if name not in of:
                of.append(name)
    return names


def each(queue: Primitive, flow: OfOne[Result]) -> Flow[list[Result]]:
    """Carry out a flow for each shard, side by side. One more round trip if the settings name SHARDS."""
    if not is_spread(queue):
        return [(yield from flow(queue))]
    names = (yield from existing([queue.name]))[queue.name]
    return (yield from gather([flow(shard(queue, name)) for name in names]))


def until(queue: Primitive, limit: int | None, flow: Callable[[Primitive, int | None], Flow[int]]) -> Flow[int]:
    """Carry out a flow for one shard after the other until it has changed ``limit`` jobs; return how many it has."""
    if not is_spread(queue):
        return (yield from flow(queue, limit))
    changed = 0
    for name in (yield from existing([queue.name]))[queue.name]:
        changed += yield from flow(shard(queue, name), None if limit is None else limit - changed)
        if changed == limit:
            break
    return changed


def of_id(queue: Primitive, id: str, flow: OfOne[Result]) -> Flow[Result]:
    """Carry out a flow for the shard of a job: the one that its id names, or else all. Return the first true result."""
    return _of_id(queue, id, flow) if is_spread(queue) else flow(queue)


def _of_id(queue: Primitive, id: str, flow: OfOne[Result]) -> Flow[Result]:
    if named := shard_of_id(queue.name, id):
        result = yield from flow(shard(queue, named))
        if result:
            return result
    results = yield from each(queue, flow)
    return next(filter(None, results), results[0])


def claimed(queue: Primitive, limit: int, worker: str | None, done: Sequence[Job]) -> Flow[claim.Claimed]:
    """Acknowledge jobs and claim others, from one shard after the other, beginning with any."""
    if not is_spread(queue):
        return claim.claim(queue, limit, worker, done=done)
    return _claimed(queue, limit, worker, done)


def _claimed(queue: Primitive, limit: int, worker: str | None, done: Sequence[Job]) -> Flow[claim.Claimed]:
    names = shard_names(queue.name)
    lost = (yield from acknowledged(queue, done)) if done else []
    jobs: list[Job] = []
    if lost:
        return claim.Claimed(jobs, None, [done.index(job) for job in lost])
    yield from _claim(queue, sample(names, len(names)), jobs, limit, worker)
    if not jobs:  # a shard that gets no more jobs may have some left
        older = [name for name in (yield from existing([queue.name]))[queue.name] if name not in names]
        yield from _claim(queue, older, jobs, limit, worker)
    return claim.Claimed(jobs, None, [])


def _claim(queue: Primitive, names: Sequence[str], jobs: list[Job], limit: int, worker: str | None) -> Flow[None]:
    for name in names:
        if len(jobs) < limit:
            try:
                reply = yield from claim.claim(shard(queue, name), limit - len(jobs), worker)
            except RedisFailure:
                if jobs:
                    return
                raise
            jobs += [job._replace(shard=name) for job in reply.jobs]


def acknowledged(queue: Primitive, jobs: Sequence[Job]) -> Flow[list[Job]]:
    """Acknowledge jobs, of each shard in a call; return those whose claim was lost."""
    return _acknowledged(queue, jobs) if is_spread(queue) else claim.ack(queue, jobs)


def _acknowledged(queue: Primitive, jobs: Sequence[Job]) -> Flow[list[Job]]:
    by_shard: dict[str, list[Job]] = {}
    for job in jobs:
        by_shard.setdefault(of_job(queue, job).name, []).append(job)
    lost = yield from gather([claim.ack(shard(queue, name), some) for name, some in by_shard.items()])
    return [job for some in lost for job in some]


def heartbeat(queue: Primitive, worker: str | None) -> Flow[int]:
    """Keep a worker alive, and return how many jobs of dead workers were returned."""
    replies = yield from each(queue, partial(liveness.heartbeat, worker=worker))
    return sum(reply.returned for reply in replies)


def sign_off(queue: Primitive, worker: str | None) -> Flow[int]:
    """Return all jobs of a worker, and remove it."""
    return sum((yield from each(queue, partial(liveness.sign_off, worker=worker))))


def of_job(queue: Primitive, job: Job) -> Primitive:
    """Return the shard from which claim() took a job."""
    return shard(queue, getattr(job, "shard", ""))


def summed(results: Sequence[QueueCounts]) -> QueueCounts:
    """Return how many jobs are in each state in all shards."""
    return QueueCounts(*map(sum, zip(*results, strict=True)))
