"""The shards of a queue, and flows over all of them. Those of a queue without shards are the flow itself.

Each shard is a queue of its own, in a slot of its own. The first has the name of the queue.
"""

from collections.abc import Iterable, Sequence
from itertools import cycle
from random import choice, sample
from typing import TypeVar
from zlib import crc32

from redis_kit.core import conf
from redis_kit.core.errors import ConfigurationError, RedisFailure
from redis_kit.core.flow import Flow
from redis_kit.core.gather import gather
from redis_kit.core.keys import BUCKETS
from redis_kit.core.primitive import Primitive
from redis_kit.core.steps import Batch, Call
from redis_kit.queues.engine import claim, ids
from redis_kit.queues.engine.claim import Claimed
from redis_kit.queues.engine.job import Job
from redis_kit.queues.engine.spread import OfOne, Put, Spread, UpTo
from redis_kit.queues.engine.unique import UniqueKey
from redis_kit.queues.keys import names_key
from redis_kit.queues.queue import Queue
from redis_kit.queues.settings import SHARD, QueueSettings, options_of, whole

Result = TypeVar("Result")
IDLE = 1440  # minutes without an attempt after which an empty shard that gets no more jobs is forgotten


class Shard(Queue):
    """One shard."""

    spread = False


class ShardedQueues(Spread):
    """Queues over whose shards the jobs are spread, of those for which the settings name SHARDS."""

    def names(self, queue: str) -> tuple[str, ...]:
        """See Spread. A shard is the only one of its name."""
        count = options_of(queue).SHARDS if _may_have_shards(queue) else 1
        return (queue, *(f"{queue}{SHARD}{bucket}" for bucket in BUCKETS[1:count]))

    def place(self, queue: str, *, lane: str = "", key: UniqueKey | None = None, id: str = "") -> str:
        """See Spread. Raises ConfigurationError for two limits.

        Jobs of the same lane are in one shard, so that its limits hold; then those of the same unique key; then those
        of the same id, if the caller chose it. Any other job may be in any shard.
        """
        if not _may_have_shards(queue) or len(names := self.names(queue)) == 1:
            return ""
        same = _only_limit(queue, lane) if lane else key.key if key else id
        return names[crc32(same.encode("utf-8", "surrogatepass")) % len(names)] if same else choice(names)  # noqa: S311 -- spreads load

    def part(self, queue: Primitive, name: str) -> Primitive:
        """See Spread."""
        return Shard(name, using=queue.using) if name else queue

    def existing(self, queues: Iterable[str]) -> Flow[dict[str, list[str]]]:
        """See Spread. One round trip if the settings name SHARDS for one of them, else none."""
        names = {queue: list(self.names(queue)) for queue in queues}
        if any(map(_may_have_shards, names)):
            for name in (yield from _registered()):
                of = names.get(whole(name), [name])
                if name not in of:
                    of.append(name)
        return names

    def older(self, queues: Iterable[str], *, using: str = "default") -> list[str]:
        """See Spread. One round trip, and two more if there are any.

        An empty one in which no job began for a day is forgotten: a process with older settings may have added some.
        """
        from redis_kit.queues.queue import over

        return over(using).run_flow(self._older(queues, using))

    def each(self, queue: Primitive, flow: OfOne[Result]) -> Flow[list[Result]]:
        """See Spread. One more round trip if the settings name SHARDS."""
        parts = yield from self._parts(queue)
        return [(yield from flow(queue))] if parts == [queue] else (yield from gather([*map(flow, parts)]))

    def until(self, queue: Primitive, limit: int | None, flow: UpTo) -> Flow[int]:
        """See Spread."""
        changed = 0
        for part in (yield from self._parts(queue)):
            changed += yield from flow(part, None if limit is None else limit - changed)
            if changed == limit:
                break
        return changed

    def of_id(self, queue: Primitive, id: str, flow: OfOne[Result]) -> Flow[Result]:
        """See Spread. That is the one that the id names, or else all are asked: the first true result counts."""
        if _is_spread(queue) and (named := ids.part_of(queue.name, id)):
            result = yield from flow(self.part(queue, named))
            if result:
                return result
        results = yield from self.each(queue, flow)
        return next(filter(None, results), results[0])

    def of_job(self, queue: Primitive, job: Job) -> Primitive:
        """See Spread."""
        return self.part(queue, getattr(job, "shard", ""))

    def put_many(self, queue: Primitive, jobs: list[tuple[str, bytes]], lane: str, put: Put) -> Flow[list[str]]:
        """See Spread. Shards get jobs in turn, and the ids name them."""
        names = self.names(queue.name)
        if len(names) == 1:
            return (yield from put(queue, jobs))
        turns = [self.place(queue.name, lane=lane)] if lane else sample(names, len(names))
        named = [(ids.of_queue(id, name), body) for (id, body), name in zip(jobs, cycle(turns), strict=False)]
        parts = [(name, named[at :: len(turns)]) for at, name in enumerate(turns) if named[at:]]
        yield from gather([put(self.part(queue, name), part) for name, part in parts])
        return [id for id, _ in named]

    def claim(self, queue: Primitive, limit: int, worker: str | None, done: Sequence[Job]) -> Flow[Claimed]:
        """See Spread. Jobs come from one shard after the other, beginning with any."""
        if not _is_spread(queue):
            return (yield from claim.claim(queue, limit, worker, done=done))
        names = self.names(queue.name)
        lost = (yield from self.ack(queue, done)) if done else []
        jobs: list[Job] = []
        if lost:
            return Claimed(jobs, None, [done.index(job) for job in lost])
        yield from self._claim(queue, sample(names, len(names)), jobs, limit, worker)
        if not jobs:  # a shard that gets no more jobs may have some left
            older = [name for name in (yield from self.existing([queue.name]))[queue.name] if name not in names]
            yield from self._claim(queue, older, jobs, limit, worker)
        return Claimed(jobs, None, [])

    def ack(self, queue: Primitive, jobs: Sequence[Job]) -> Flow[list[Job]]:
        """See Spread. One call for each shard."""
        if not _is_spread(queue):
            return (yield from claim.ack(queue, jobs))
        by_shard: dict[str, list[Job]] = {}
        for job in jobs:
            by_shard.setdefault(getattr(job, "shard", "") or queue.name, []).append(job)
        lost = yield from gather([claim.ack(self.part(queue, name), some) for name, some in by_shard.items()])
        return [job for some in lost for job in some]

    def _parts(self, queue: Primitive) -> Flow[list[Primitive]]:
        if not _is_spread(queue):
            return [queue]
        return [self.part(queue, name) for name in (yield from self.existing([queue.name]))[queue.name]]

    def _older(self, queues: Iterable[str], using: str) -> Flow[list[str]]:
        from redis_kit.queues.reports import stats

        shards = [name for name in (yield from _registered()) if whole(name) != name and whole(name) in queues]
        older = [name for name in shards if name not in self.names(whole(name))]
        if not older:
            return []
        replies = yield Batch([stats.QUEUE_STATS(base, IDLE) for base in stats.bases(older, using)])
        reports = {name: stats.read_report([reply], IDLE) for name, reply in zip(older, replies, strict=True)}
        idle = [name for name, report in reports.items() if not (any(report.counts) or any(report.begun))]
        if idle:
            yield Call("SREM", names_key(), *idle)
        return [name for name in older if name not in idle]

    def _claim(
        self, queue: Primitive, names: Sequence[str], jobs: list[Job], limit: int, worker: str | None
    ) -> Flow[None]:
        for name in names:
            if len(jobs) < limit:
                try:
                    reply = yield from claim.claim(self.part(queue, name), limit - len(jobs), worker)
                except RedisFailure:
                    if jobs:
                        return
                    raise
                jobs += [job._replace(shard=name) for job in reply.jobs]


def _may_have_shards(queue: str) -> bool:
    """Return whether the settings name the option SHARDS of a queue: with a 1 there may be older shards."""
    entries = conf.section(QueueSettings).QUEUE_OPTIONS
    return bool(entries) and "SHARDS" in entries.get(queue, ())


def _is_spread(queue: Primitive) -> bool:
    """Return whether a queue may have several shards, and is none itself."""
    return isinstance(queue, Queue) and queue.spread and _may_have_shards(queue.name)


def _registered() -> Flow[list[str]]:
    """Read the names of all shards that were ever used. One round trip."""
    return sorted(name.decode("utf-8", "replace") for name in (yield Call("SMEMBERS", names_key())))


def _only_limit(queue: str, lane: str) -> str:
    limits = lane.partition("\n")[0]
    if " " in limits:
        raise ConfigurationError(
            f"A job of the queue {queue!r} has several limits: {limits.replace(' ', ', ')}. With SHARDS it can have "
            "one: its group, or a limit of its task. Remove the others, or SHARDS."
        )
    return limits
