"""The jobs of a queue in one state, or those of a task or a tag among them."""

from functools import partial
from typing import NamedTuple

from redis_kit.core.flow import Flow
from redis_kit.core.primitive import Primitive
from redis_kit.core.steps import Call
from redis_kit.queues.jobs import done, job
from redis_kit.queues.jobs.done import DoneJob
from redis_kit.queues.jobs.job import JobInfo, State
from redis_kit.queues.jobs.message import tags_of, task_of
from redis_kit.queues.store import manage, shards

LOOKED_THROUGH = 10_000  # jobs of a state, for those that are wanted


class Wanted(NamedTuple):
    """Which jobs are wanted: those of a task, and those with a tag; None for any."""

    task: str | None = None
    tag: str | None = None

    def matches(self, task: str, tags: tuple[str, ...]) -> bool:
        """Return whether a job of this task with these tags is one of them."""
        return self.task in (None, task) and (self.tag is None or self.tag in tags)


ANY = Wanted()


def first_jobs(queue: Primitive, state: State, limit: int, wanted: Wanted = ANY) -> Flow[list[JobInfo]]:
    """Return the first ``limit`` jobs of a state in the order of peek(), or those among them that match.

    Their bodies are cut to what task_of() and tags_of() need. One round trip; with a task or a tag one for each 1000
    jobs of the state, at most 10.
    """
    by_shard = yield from shards.each(queue, partial(_first_jobs, state=state, limit=limit, wanted=wanted))
    return manage.merged(state, by_shard, limit)


def latest_done(queue: Primitive, limit: int, wanted: Wanted = ANY) -> Flow[list[DoneJob]]:
    """Return the latest ``limit`` done jobs that the queue keeps, or those among them that match.

    One round trip, two if the settings name SHARDS. With a task or a tag 10,000 are looked at.
    """
    by_shard = yield from shards.each(queue, partial(_latest_done, limit=limit, wanted=wanted))
    return sorted((info for some in by_shard for info in some), key=lambda info: -info.ended)[:limit]


def _latest_done(queue: Primitive, *, limit: int, wanted: Wanted) -> Flow[list[DoneJob]]:
    most = limit if wanted == ANY else LOOKED_THROUGH
    entries = yield Call("XREVRANGE", queue.key("done"), "+", "-", "COUNT", most)
    jobs = [info for id, fields in entries if (info := done.read(id, fields))]
    return [info for info in jobs if wanted.matches(info.task, info.tags)][:limit]


def _first_jobs(queue: Primitive, *, state: State, limit: int, wanted: Wanted) -> Flow[list[JobInfo]]:
    chosen: list[JobInfo] = []
    offset, page = 0, limit if wanted == ANY else manage.PAGE
    while len(chosen) < limit and offset < LOOKED_THROUGH:
        jobs = job.stored(state, (yield manage.peek_step(queue, page, state, offset=offset, cut=manage.HEAD)))
        chosen += [info for info in jobs if wanted.matches(task_of(info.body), tags_of(info.body))]
        offset += len(jobs)
        if not jobs:
            break
    return chosen[:limit]
