"""The jobs of a queue in one state, or those of one task among them."""

from functools import partial

from redis_kit.core.flow import Flow
from redis_kit.core.primitive import Primitive
from redis_kit.core.steps import Call
from redis_kit.queues.jobs import done, job
from redis_kit.queues.jobs.done import DoneJob
from redis_kit.queues.jobs.job import JobInfo, State
from redis_kit.queues.jobs.message import task_of
from redis_kit.queues.store import manage, shards

LOOKED_THROUGH = 10_000  # jobs of a state, for those of one task


def first_jobs(queue: Primitive, state: State, limit: int, task: str | None = None) -> Flow[list[JobInfo]]:
    """Return the first ``limit`` jobs of a state, in the order of peek(), and if ``task`` is given only those of it.

    Their bodies are cut to what task_of() needs. One round trip; with a task one for each 1000 jobs of the state, at
    most 10.
    """
    by_shard = yield from shards.each(queue, partial(_first_jobs, state=state, limit=limit, task=task))
    return manage.merged(state, by_shard, limit)


def latest_done(queue: Primitive, limit: int, task: str | None = None) -> Flow[list[DoneJob]]:
    """Return the latest ``limit`` done jobs that the queue keeps, and if ``task`` is given only those of it.

    One round trip, two if the settings name SHARDS. With a task 10,000 are looked at.
    """
    by_shard = yield from shards.each(queue, partial(_latest_done, limit=limit, task=task))
    return sorted((info for some in by_shard for info in some), key=lambda info: -info.ended)[:limit]


def _latest_done(queue: Primitive, *, limit: int, task: str | None) -> Flow[list[DoneJob]]:
    most = limit if task is None else LOOKED_THROUGH
    entries = yield Call("XREVRANGE", queue.key("done"), "+", "-", "COUNT", most)
    jobs = [info for id, fields in entries if (info := done.read(id, fields))]
    return [info for info in jobs if task in (None, info.task)][:limit]


def _first_jobs(queue: Primitive, *, state: State, limit: int, task: str | None) -> Flow[list[JobInfo]]:
    chosen: list[JobInfo] = []
    offset, page = 0, manage.PAGE if task else limit
    while len(chosen) < limit and offset < LOOKED_THROUGH:
        jobs = job.stored(state, (yield manage.peek_step(queue, page, state, offset=offset, cut=manage.HEAD)))
        chosen += [info for info in jobs if task in (None, task_of(info.body))]
        offset += len(jobs)
        if not jobs:
            break
    return chosen[:limit]
