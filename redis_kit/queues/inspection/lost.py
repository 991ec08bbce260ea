"""Workers that ended without signing off, as the workers that took their jobs recorded them."""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from redis_kit.core.errors import RedisFailure
from redis_kit.core.flow import Flow
from redis_kit.core.gather import gather
from redis_kit.core.steps import CombinedBatch
from redis_kit.core.values.sequences import batched
from redis_kit.queues.inspection.stats import MOST_BYTES, TOGETHER, Errors, read_chosen, read_workers
from redis_kit.queues.inspection.workers import WorkerInfo
from redis_kit.queues.queue import Queue
from redis_kit.queues.store import calls, shards

HOUR = 3600.0  # seconds for which a lost worker needs attention
_RECORD = re.compile(rb"\d+ (\d{1,15}) (\d{1,15}) (\d{1,15}) (.*)", re.DOTALL)


class LostWorker(NamedTuple):
    """A worker that ended without signing off, such as on a machine that failed.

    ``jobs`` is how many jobs other workers took from it, ``age`` how many seconds ago that was. ``supervisor_pid`` is 0
    for other programs than ``rk_worker``.
    """

    id: str
    host: str
    pid: int
    supervisor_pid: int
    queues: tuple[str, ...]
    jobs: int
    age: float


def lost_workers(queues: Iterable[str] | None = None, *, using: str = "default") -> list[LostWorker]:
    """Return the workers that ended without signing off in the last 24 hours, the latest first: at most 50 of a queue.

    A worker is recorded by the one that takes its jobs, after ``WORKER_TIMEOUT``, and a program without a supervisor
    only if it held jobs. Queues with a damaged key are left out. By default all queues. One round trip, two for all.
    """
    return Queue("all", using=using).run_flow(_read(queues, using))


async def alost_workers(queues: Iterable[str] | None = None, *, using: str = "default") -> list[LostWorker]:
    """See lost_workers()."""
    return await Queue("all", using=using).arun_flow(_read(queues, using))


def workers_and_lost(
    queues: Iterable[str] | None = None, *, using: str = "default", errors: Errors
) -> tuple[list[WorkerInfo], list[LostWorker]]:
    """Return what list_workers() and lost_workers() return, in as many round trips as one of them."""
    return Queue("all", using=using).run_flow(read_workers_and_lost(queues, using, errors))


def read_workers_and_lost(
    queues: Iterable[str] | None, using: str, errors: Errors, *, most_bytes: int = MOST_BYTES
) -> Flow[tuple[list[WorkerInfo], list[LostWorker]]]:
    """See workers_and_lost() and read_workers()."""
    names = yield from read_chosen(queues)
    both: list[Flow[Any]] = [read_workers(names, using, errors, most_bytes=most_bytes), read(names, using)]
    workers, lost = yield from gather(both, combine=True)
    return workers, lost


def read(queues: Iterable[str], using: str) -> Flow[list[LostWorker]]:
    """Read the lost workers of queues, the latest first. Queues with a damaged key are left out. One round trip."""
    names = yield from shards.existing(queues)
    places = [(queue, name) for queue, several in names.items() for name in several]
    steps = [calls.LIST_LOST_WORKERS(Queue(name, using=using).key("")) for _, name in places]
    replies = (yield CombinedBatch(steps, lenient=True, most=TOGETHER)) if steps else []
    by_id: dict[str, LostWorker] = {}
    for (queue, _), reply in zip(places, replies, strict=True):
        for parts in () if isinstance(reply, RedisFailure) else batched(reply, 3):
            if worker := _worker(queue, *parts):
                by_id[worker.id] = _merged(by_id[worker.id], worker) if worker.id in by_id else worker
    return sorted(by_id.values(), key=lambda worker: worker.age)


def _read(queues: Iterable[str] | None, using: str) -> Flow[list[LostWorker]]:
    return (yield from read((yield from read_chosen(queues)), using))


def _worker(queue: str, id: bytes, age: int, record: bytes) -> LostWorker | None:
    match = _RECORD.fullmatch(record)
    if not match:
        return None
    jobs, pid, supervisor_pid = map(int, match.groups()[:3])
    host = match[4].decode("utf-8", "replace")
    return LostWorker(id.decode("utf-8", "replace"), host, pid, supervisor_pid, (queue,), jobs, age / 1000)


def _merged(worker: LostWorker, other: LostWorker) -> LostWorker:
    """Return a worker that was lost in two queues, or in two shards of one, as one."""
    queues = tuple(dict.fromkeys(worker.queues + other.queues))
    return worker._replace(queues=queues, jobs=worker.jobs + other.jobs, age=min(worker.age, other.age))
