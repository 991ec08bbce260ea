"""Many queues and their workers in one round trip, on a Redis Cluster in one for each node."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, Literal, get_args

from redis_kit.core import conf
from redis_kit.core.errors import InvalidName, InvalidValue, KeyConflict, RedisFailure
from redis_kit.core.flow import Flow
from redis_kit.core.keys import encode
from redis_kit.core.logs.rate_limit import LogRateLimit
from redis_kit.core.primitive import Primitive
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.steps import Batch, Call, CombinedBatch
from redis_kit.core.text import shortened
from redis_kit.core.values.numbers import whole_number
from redis_kit.core.values.sequences import batched
from redis_kit.queues import validation
from redis_kit.queues.inspection import report
from redis_kit.queues.inspection import workers as workerinfo
from redis_kit.queues.inspection.report import QueueStats
from redis_kit.queues.inspection.workers import WorkerInfo
from redis_kit.queues.jobs.job import QueueCounts
from redis_kit.queues.jobs.shard import shard_names
from redis_kit.queues.keys import names_key
from redis_kit.queues.queue import Queue
from redis_kit.queues.settings import QueueSettings, whole
from redis_kit.queues.store import calls, enqueue, shards

logger = logging.getLogger("redis_kit")
_log_limit = LogRateLimit()
MINUTES = (1, 4320)
MOST_WORKERS = 100
IDLE = 1440  # minutes without an attempt after which an empty shard that gets no more jobs is forgotten
MOST_BYTES = 4 * 1024 * 1024  # of jobs' records, read for one queue
TOGETHER = 10  # queues that one script reads
Command = Literal["quiet", "resume", "stop"]
Errors = dict[str, RedisFailure]


class _Overview(Primitive):
    component, settings = "queues", QueueSettings

    def tag(self) -> str:
        return "queues"


def queue_names(*, using: str = "default") -> list[str]:
    """Return the names of all queues: those in ``NAMES``, then those that were used or that a worker serves.

    One round trip. A queue with shards has one name. ``rk_worker`` removes a name that was never used when it stops.
    """
    return _over(using).run_flow(read_names())


async def aqueue_names(*, using: str = "default") -> list[str]:
    """See queue_names()."""
    return await _over(using).arun_flow(read_names())


def never_used(queues: Iterable[str], *, using: str = "default") -> set[str]:
    """Return which of these queues no job was ever put into, even if a worker has registered them. One round trip."""
    return _over(using).run_flow(_never_used(_listed(queues), using))


def queue_counts(
    queues: Iterable[str], *, using: str = "default", errors: Errors | None = None
) -> dict[str, QueueCounts]:
    """Return how many jobs are in each state, for each queue at one moment, and for one with shards almost.

    One round trip, and one more if the settings name SHARDS of a queue. See queue_stats() for ``errors``.
    """
    return _over(using).run_flow(_counts(_listed(queues), using, errors))


async def aqueue_counts(
    queues: Iterable[str], *, using: str = "default", errors: Errors | None = None
) -> dict[str, QueueCounts]:
    """See queue_counts()."""
    return await _over(using).arun_flow(_counts(_listed(queues), using, errors))


def queue_stats(
    queues: Iterable[str], *, minutes: int = 30, using: str = "default", errors: Errors | None = None
) -> dict[str, QueueStats]:
    """Return how queues are doing, with their numbers of the last minutes, at most 4320.

    One round trip, and one more if the settings name SHARDS of a queue.

    A queue with a key of a wrong type raises KeyConflict. With a dict for ``errors``, the error is stored there by the
    queue's name, and the other queues are returned.
    """
    return _over(using).run_flow(read_reports(_listed(queues), minutes, using, errors))


async def aqueue_stats(
    queues: Iterable[str], *, minutes: int = 30, using: str = "default", errors: Errors | None = None
) -> dict[str, QueueStats]:
    """See queue_stats()."""
    return await _over(using).arun_flow(read_reports(_listed(queues), minutes, using, errors))


def list_workers(
    queues: Iterable[str] | None = None, *, using: str = "default", errors: Errors | None = None
) -> list[WorkerInfo]:
    """Return the workers of these queues, by default of all: at most 100 of each. One round trip, two for all.

    A queue with a key of a wrong type is left out. With a dict for ``errors``, the error is stored there by the queue's
    name; without it the error is logged, at most once a minute.
    """
    return _over(using).run_flow(read_workers(queues, using, errors))


async def alist_workers(
    queues: Iterable[str] | None = None, *, using: str = "default", errors: Errors | None = None
) -> list[WorkerInfo]:
    """See list_workers()."""
    return await _over(using).arun_flow(read_workers(queues, using, errors))


def control_worker(worker: str, command: Command, *, using: str = "default") -> bool:
    """Send a command to a worker: "quiet" to claim no more jobs, "resume", or "stop".

    Return False if the worker does not exist or is dead. ``rk_worker`` reads the command with its next heartbeat; after
    a minute it is void. Other programs that claim jobs read no commands. The id may be that of a supervisor or of
    any of its workers. Three round trips.
    """
    return _over(using).run_flow(_control(worker, command, using))


async def acontrol_worker(worker: str, command: Command, *, using: str = "default") -> bool:
    """See control_worker()."""
    return await _over(using).arun_flow(_control(worker, command, using))


def older_shards(queues: Iterable[str], *, using: str = "default") -> list[str]:
    """Return shards of these queues that get no jobs by the present settings and may still have some.

    An empty one in which no job began for a day is forgotten: a process with older settings may have added some. One
    round trip, and two more if there are any.
    """
    return _over(using).run_flow(_older(_listed(queues), using))


def read_stats(minutes: int, using: str, errors: Errors) -> Flow[dict[str, QueueStats]]:
    """Read the numbers of all queues. Two round trips."""
    names = yield from read_names()
    return (yield from read_reports(names, minutes, using, errors))


def _over(using: str) -> _Overview:
    return _Overview("all", using=using)


def _listed(queues: Iterable[str]) -> list[str]:
    """Return the names of queues. Raises InvalidValue for a single name, whose letters would be taken for names."""
    if isinstance(queues, str):
        raise InvalidValue(f"queues must be a list of names, such as [{shortened(queues)}], not {shortened(queues)}.")
    return list(queues)


def _bases(queues: Iterable[str], using: str) -> list[str]:
    return [Queue(name, using=using).key("") for name in queues]


def read_names() -> Flow[list[str]]:
    """Read the names of all queues. One round trip."""
    members = yield Call("SMEMBERS", names_key())
    used = sorted(name.decode("utf-8", "replace") for name in members)
    return [*dict.fromkeys([*conf.section(QueueSettings).NAMES, *map(whole, filter(_is_name, used))])]


def read_chosen(queues: Iterable[str] | None) -> Flow[list[str]]:
    """Return the names of these queues, or read those of all. No round trip or one."""
    return (yield from read_names()) if queues is None else _listed(queues)


def _never_used(queues: Sequence[str], using: str) -> Flow[set[str]]:
    names = yield from shards.existing(queues)
    unused = yield from enqueue.never_used([Queue(name, using=using) for name in chain.from_iterable(names.values())])
    missing = {queue.name for queue in unused}
    return {queue for queue in queues if missing.issuperset(names[queue])}


def _older(queues: Sequence[str], using: str) -> Flow[list[str]]:
    registered = sorted(name.decode("utf-8", "replace") for name in (yield Call("SMEMBERS", names_key())))
    shards_of = [name for name in registered if whole(name) != name and whole(name) in queues]
    older = [name for name in shards_of if name not in shard_names(whole(name))]
    if not older:
        return []
    replies = yield Batch([calls.QUEUE_STATS(base, IDLE) for base in _bases(older, using)])
    reports = {name: report.read([reply]) for name, reply in zip(older, replies, strict=True)}
    idle = [name for name, stats in reports.items() if not (any(stats.counts) or any(stats.begun))]
    if idle:
        yield Call("SREM", names_key(), *idle)
    return [name for name in older if name not in idle]


def _of_each(
    queues: Sequence[str], using: str, step: Callable[[str], ScriptCall], *, lenient: bool, most: int = 25
) -> Flow[list[list[Any]]]:
    """Return for each queue the replies of its shards."""
    names = yield from shards.existing(queues)
    chosen = [names[queue] for queue in queues]
    steps = [step(base) for base in _bases(chain.from_iterable(chosen), using)]
    replies = iter((yield CombinedBatch(steps, lenient=lenient, most=most)))
    return [list(islice(replies, len(several))) for several in chosen]


def _is_name(name: str) -> bool:
    try:
        encode(name)
    except InvalidName:
        return False
    return True


def _counts(queues: list[str], using: str, errors: Errors | None) -> Flow[dict[str, QueueCounts]]:
    replies = yield from _of_each(queues, using, calls.COUNT, lenient=errors is not None)
    return {
        name: shards.summed([QueueCounts(*reply) for reply in several])
        for name, several in _readable(queues, replies, errors)
    }


def _readable(queues: list[str], replies: list[list[Any]], errors: Errors | None) -> Iterator[tuple[str, list[Any]]]:
    """Yield the replies by queue; ``errors`` takes the first error of a queue."""
    for name, several in zip(queues, replies, strict=True):
        error = next((reply for reply in several if isinstance(reply, RedisFailure)), None)
        if errors is not None and error:
            errors[name] = error
        else:
            yield name, several


def read_reports(
    queues: list[str], minutes: int, using: str, errors: Errors | None = None
) -> Flow[dict[str, QueueStats]]:
    """See queue_stats()."""
    whole_number("minutes", minutes, MINUTES)
    replies = yield from _of_each(
        queues, using, lambda base: calls.QUEUE_STATS(base, minutes), lenient=errors is not None, most=TOGETHER
    )
    return {name: report.read(several) for name, several in _readable(queues, replies, errors)}


def read_workers(
    queues: Iterable[str] | None, using: str, errors: Errors | None = None, *, most_bytes: int = MOST_BYTES
) -> Flow[list[WorkerInfo]]:
    """See list_workers(). With no bytes, the tasks and ages of jobs are not read."""
    looked_at = yield from read_chosen(queues)
    replies = yield from _of_each(
        looked_at,
        using,
        lambda base: calls.LIST_WORKERS(base, MOST_WORKERS, most_bytes),
        lenient=True,
        most=TOGETHER,
    )
    by_id: dict[str, WorkerInfo] = {}
    for name, reply in [(name, reply) for name, several in zip(looked_at, replies, strict=True) for reply in several]:
        if isinstance(reply, RedisFailure):
            _left_out(name, reply, errors)
            continue
        for parts in batched(reply, 4):
            worker = workerinfo.worker(name, *parts)
            by_id[worker.id] = workerinfo.merged(by_id[worker.id], worker) if worker.id in by_id else worker
    return sorted(by_id.values())


def _left_out(queue: str, error: RedisFailure, errors: Errors | None) -> None:
    if errors is not None:
        errors[queue] = error
    elif not isinstance(error, KeyConflict):
        raise error
    elif _log_limit.allows(queue):
        logger.error("Workers of queue %a are not listed: %s", queue, error)


def _control(worker: str, command: str, using: str) -> Flow[bool]:
    validation.identifier("worker", worker)
    validation.one_of("command", command, get_args(Command))
    chosen = [info for info in (yield from read_workers(None, using)) if worker in (info.id, info.supervisor)]
    places = [(base, info.id) for info in chosen for base in _bases(info.queues, using)]
    replies = (yield Batch([calls.send_command(base, id, command) for base, id in places])) if places else []
    return any(replies)
