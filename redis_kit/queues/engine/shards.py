"""The shards of a queue, and flows over all of them. For a queue without shards they are the flow itself.

Each shard is a queue of its own, in a slot of its own. The first has the name of the queue.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from random import choice, sample
from typing import ClassVar, TypeVar
from zlib import crc32

from redis_kit.core import conf
from redis_kit.core.errors import ConfigurationError, RedisFailure
from redis_kit.core.flow import Flow
from redis_kit.core.gather import gather
from redis_kit.core.keys import BUCKETS
from redis_kit.core.primitive import Primitive
from redis_kit.core.steps import Call
from redis_kit.queues.engine import claim, ids, liveness
from redis_kit.queues.engine.job import Job, QueueCounts
from redis_kit.queues.engine.lane import Lane
from redis_kit.queues.engine.unique import UniqueKey
from redis_kit.queues.keys import names_key
from redis_kit.queues.settings import SHARD, QueueSettings, options_of, whole

Result = TypeVar("Result")
OfOne = Callable[[Primitive], Flow[Result]]


def shard_names(queue: str) -> tuple[str, ...]:
    """Return the shards of a queue that get jobs: the queue itself if it has no others, or is a shard."""
    count = options_of(queue).SHARDS if may_have_shards(queue) else 1
    return (queue, *(f"{queue}{SHARD}{bucket}" for bucket in BUCKETS[1:count]))


def may_have_shards(queue: str) -> bool:
    """Return whether the settings name the option SHARDS of a queue: with a 1 there may be older shards."""
    entries = conf.section(QueueSettings).QUEUE_OPTIONS
    return bool(entries) and "SHARDS" in entries.get(queue, ())


def shard_for(queue: str, *, lane: Lane | None = None, key: UniqueKey | None = None, id: str = "") -> str:
    """Return the shard for a new job, "" for a queue without shards.

    Jobs of the same lane are in one shard, so that its limits hold; then those of the same unique key; then those of
    the same id, if the caller chose it. Any other job may be in any shard. Raises ConfigurationError for two limits.
    """
    if not may_have_shards(queue) or len(names := shard_names(queue)) == 1:
        return ""
    same = _only_limit(queue, lane) if lane else key.key if key else id
    return names[crc32(same.encode("utf-8", "surrogatepass")) % len(names)] if same else choice(names)  # noqa: S311 -- spreads load


def shard_of_id(queue: str, id: str) -> str:
    """Return the shard that an id names, "" if it names none of this queue: the caller of put() may have chosen it."""
    named = ids.queue_of(id) if "." in id else ""
    return named if whole(named) == queue else ""


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


def _only_limit(queue: str, lane: Lane) -> str:
    limits = lane.text.partition("\n")[0]
    if " " in limits:
        raise ConfigurationError(
            f"A job of the queue {queue!r} has several limits: {limits.replace(' ', ', ')}. With SHARDS it can have "
            "one: its group, or a limit of its task. Remove the others, or SHARDS."
        )
    return limits
