"""Many queues and their workers in one round trip, on a Redis Cluster in one for each node."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, get_args

from redis_kit.core import conf
from redis_kit.core.errors import InvalidName, InvalidValue, KeyConflict, RedisFailure
from redis_kit.core.flow import Flow
from redis_kit.core.keys import encode
from redis_kit.core.logs.rate_limit import LogRateLimit
from redis_kit.core.primitive import Primitive
from redis_kit.core.steps import Batch, Call, CombinedBatch
from redis_kit.core.text import shortened
from redis_kit.queues import validation
from redis_kit.queues.jobs.job import PauseInfo, QueueCounts, pause
from redis_kit.queues.keys import names_key
from redis_kit.queues.monitoring import workers as workerinfo
from redis_kit.queues.monitoring.workers import WorkerInfo
from redis_kit.queues.queue import Queue
from redis_kit.queues.settings import QueueSettings
from redis_kit.queues.store import calls, enqueue, unknown_calls
from redis_kit.queues.store.unknown_calls import UnknownCalls

logger = logging.getLogger("redis_kit")
_log_limit = LogRateLimit()
MINUTES = (1, 4320)
MOST_WORKERS = 100
MOST_BYTES = 4 * 1024 * 1024  # of jobs' records, read for one queue
TOGETHER = 10  # queues that one script reads
Command = Literal["quiet", "resume", "stop"]
Errors = dict[str, RedisFailure]


class QueueStats(NamedTuple):
    """How a queue is doing.

    - ``wait``: seconds for which the next job has been ready, or the first scheduled job has been due, whichever is
      longer; None without a job.
    - ``done`` and ``failed``: jobs and attempts in each minute up to ``minute``, the present one, counted since 1970.
    - ``begun``: attempts that began in each minute; ``lateness`` and ``latest``: seconds from the time for which these
      were due to their claims, on average and at most.
    - ``paused``: None if the queue gives out jobs.
    - ``workers``: living workers; ``quiet``: those among the first 100 that claim no jobs, as they are quiet or
      stopping.
    - ``unknown``: the calls that workers returned as they can't run them; first those that no living worker can run.
    """

    counts: QueueCounts
    wait: float | None
    minute: int
    done: list[int]
    failed: list[int]
    begun: list[int]
    lateness: list[float]
    latest: list[float]
    paused: PauseInfo | None = None
    workers: int = 0
    quiet: int = 0
    unknown: tuple[UnknownCalls, ...] = ()

    @property
    def claiming(self) -> int:
        """Return how many living workers claim jobs of the queue."""
        return self.workers - self.quiet

    @property
    def deserted(self) -> bool:
        """Return whether jobs are due and no living worker claims jobs of the queue."""
        return self.wait is not None and self.claiming <= 0


class _Overview(Primitive):
    component, settings = "queues", QueueSettings

    def tag(self) -> str:
        return "queues"


def queue_names(*, using: str = "default") -> list[str]:
    """Return the names of all queues: those in ``NAMES``, then those that were used or that a worker serves.

    One round trip. ``rk_worker`` removes a name that was never used when it stops.
    """
    return _over(using).run_flow(_names())


async def aqueue_names(*, using: str = "default") -> list[str]:
    """See queue_names()."""
    return await _over(using).arun_flow(_names())


def never_used(queues: Iterable[str], *, using: str = "default") -> set[str]:
    """Return which of these queues no job was ever put into, even if a worker has registered them. One round trip."""
    return _over(using).run_flow(_never_used(_listed(queues), using))


def queue_counts(
    queues: Iterable[str], *, using: str = "default", errors: Errors | None = None
) -> dict[str, QueueCounts]:
    """Return how many jobs are in each state, for each queue at one moment. One round trip.

    See queue_stats() for ``errors``.
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
    """Return how queues are doing, with their numbers of the last minutes, at most 4320. One round trip.

    A queue with a key of a wrong type raises KeyConflict. With a dict for ``errors``, the error is stored there by the
    queue's name, and the other queues are returned.
    """
    return _over(using).run_flow(_reports(_listed(queues), minutes, using, errors))


async def aqueue_stats(
    queues: Iterable[str], *, minutes: int = 30, using: str = "default", errors: Errors | None = None
) -> dict[str, QueueStats]:
    """See queue_stats()."""
    return await _over(using).arun_flow(_reports(_listed(queues), minutes, using, errors))


def list_workers(
    queues: Iterable[str] | None = None, *, using: str = "default", errors: Errors | None = None
) -> list[WorkerInfo]:
    """Return the workers of these queues, by default of all: at most 100 of each. One round trip, two for all.

    A queue with a key of a wrong type is left out. With a dict for ``errors``, the error is stored there by the queue's
    name; without it the error is logged, at most once a minute.
    """
    return _over(using).run_flow(_workers(queues, using, errors))


async def alist_workers(
    queues: Iterable[str] | None = None, *, using: str = "default", errors: Errors | None = None
) -> list[WorkerInfo]:
    """See list_workers()."""
    return await _over(using).arun_flow(_workers(queues, using, errors))


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


def _over(using: str) -> _Overview:
    return _Overview("all", using=using)


def _listed(queues: Iterable[str]) -> list[str]:
    """Return the names of queues. Raises InvalidValue for a single name, whose letters would be taken for names."""
    if isinstance(queues, str):
        raise InvalidValue(f"queues must be a list of names, such as [{shortened(queues)}], not {shortened(queues)}.")
    return list(queues)


def _bases(queues: Sequence[str], using: str) -> list[str]:
    return [Queue(name, using=using).key("") for name in queues]


def _names() -> Flow[list[str]]:
    members = yield Call("SMEMBERS", names_key())
    used = sorted(name.decode("utf-8", "replace") for name in members)
    return [*dict.fromkeys([*conf.section(QueueSettings).NAMES, *filter(_is_name, used)])]


def _never_used(queues: Sequence[str], using: str) -> Flow[set[str]]:
    unused = yield from enqueue.never_used([Queue(name, using=using) for name in queues])
    return {queue.name for queue in unused}


def _is_name(name: str) -> bool:
    try:
        encode(name)
    except InvalidName:
        return False
    return True


def _counts(queues: list[str], using: str, errors: Errors | None) -> Flow[dict[str, QueueCounts]]:
    replies = yield CombinedBatch([calls.COUNT(base) for base in _bases(queues, using)], lenient=errors is not None)
    return {name: QueueCounts(*reply) for name, reply in _readable(queues, replies, errors)}


def _readable(queues: list[str], replies: list[Any], errors: Errors | None) -> Iterator[tuple[str, Any]]:
    """Yield the replies by queue; ``errors`` takes those that are errors."""
    for name, reply in zip(queues, replies, strict=True):
        if errors is not None and isinstance(reply, RedisFailure):
            errors[name] = reply
        else:
            yield name, reply


def _reports(queues: list[str], minutes: int, using: str, errors: Errors | None) -> Flow[dict[str, QueueStats]]:
    validation.whole("minutes", minutes, MINUTES)
    steps = [calls.QUEUE_STATS(base, minutes) for base in _bases(queues, using)]
    replies = yield CombinedBatch(steps, lenient=errors is not None, most=TOGETHER)
    return {name: _report(reply) for name, reply in _readable(queues, replies, errors)}


def _report(reply: list[Any]) -> QueueStats:
    wait = None if reply[4] < 0 else reply[4] / 1000
    done, failed, begun, late, latest = (reply[at::5] for at in range(11, 16))
    return QueueStats(
        QueueCounts(*reply[:4]),
        wait,
        reply[5],
        done,
        failed,
        begun,
        [total / 1000 / max(1, count) for total, count in zip(late, begun, strict=True)],
        [most / 1000 for most in latest],
        pause(reply[6], reply[7]),
        reply[8],
        reply[9],
        unknown_calls.read(reply[10]),
    )


def _workers(queues: Iterable[str] | None, using: str, errors: Errors | None = None) -> Flow[list[WorkerInfo]]:
    looked_at = (yield from _names()) if queues is None else _listed(queues)
    steps = [calls.LIST_WORKERS(base, MOST_WORKERS, MOST_BYTES) for base in _bases(looked_at, using)]
    replies = yield CombinedBatch(steps, lenient=True, most=TOGETHER)
    by_id: dict[str, WorkerInfo] = {}
    for name, reply in zip(looked_at, replies, strict=True):
        if isinstance(reply, RedisFailure):
            _left_out(name, reply, errors)
            continue
        for at in range(0, len(reply), 4):
            worker = workerinfo.worker(name, *reply[at : at + 4])
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
    chosen = [info for info in (yield from _workers(None, using)) if worker in (info.id, info.supervisor)]
    places = [(base, info.id) for info in chosen for base in _bases(info.queues, using)]
    replies = (yield Batch([calls.send_command(base, id, command) for base, id in places])) if places else []
    return any(replies)
