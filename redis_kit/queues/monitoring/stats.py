"""Many queues at a look, and the workers behind them: all of it in one round trip, on a Cluster one per node."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, get_args

from redis_kit.core import conf
from redis_kit.core.errors import InvalidName, KeyConflict, RedisFailure
from redis_kit.core.flow import Flow
from redis_kit.core.keys import encode
from redis_kit.core.logs.rate_limit import LogRateLimit
from redis_kit.core.primitive import Primitive
from redis_kit.core.steps import Batch, Call
from redis_kit.queues import validation
from redis_kit.queues.jobs.job import Counts, Pause, pause
from redis_kit.queues.monitoring import workers as workerinfo
from redis_kit.queues.monitoring.workers import Worker
from redis_kit.queues.queue import Queue
from redis_kit.queues.settings import QueueSettings
from redis_kit.queues.store import calls, names, unknown
from redis_kit.queues.store.unknown import UnknownCalls

logger = logging.getLogger("redis_kit")
_log_limit = LogRateLimit()
MINUTES = (1, 4320)
MOST_WORKERS = 100
MOST_BYTES = 4 * 1024 * 1024  # of jobs' records, read for one queue
Order = Literal["quiet", "work", "stop"]
Errors = dict[str, RedisFailure]


class Report(NamedTuple):
    """How a queue is doing.

    ``wait`` is for how many seconds the next job has been ready or, where that is longer, a scheduled one has been due
    that no worker came for; None where there is neither. ``done`` and ``failed`` are numbers of jobs and of attempts in
    each minute up to ``minute``, the present one, counted since 1970; ``begun`` is how many attempts began in it,
    ``lateness`` by how many seconds these were late on average, and ``latest`` at most: the time of the claim less
    that for which the attempt was due. ``paused`` is None where the queue gives out jobs, ``workers`` how many
    living ones there are for it, and ``quiet`` how many of these claim no more, as they are quiet or stopping, among
    the first 100. ``unknown`` are the calls that workers gave back as they can't run them, those first that none can.
    """

    counts: Counts
    wait: float | None
    minute: int
    done: list[int]
    failed: list[int]
    begun: list[int]
    lateness: list[float]
    latest: list[float]
    paused: Pause | None = None
    workers: int = 0
    quiet: int = 0
    unknown: tuple[UnknownCalls, ...] = ()

    @property
    def deserted(self) -> bool:
        """Tell whether jobs are due and no worker lives that claims jobs of the queue."""
        return self.wait is not None and self.workers <= self.quiet


class _Overview(Primitive):
    component, settings = "queues", QueueSettings

    def tag(self) -> str:
        return "queues"


def known_queues(*, using: str = "default") -> list[str]:
    """Return the names of all queues: those in ``NAMES``, then those that were used. One round trip."""
    return _over(using)._run(_names())


async def aknown_queues(*, using: str = "default") -> list[str]:
    """See known_queues()."""
    return await _over(using)._arun(_names())


def never_used(queues: Iterable[str], *, using: str = "default") -> set[str]:
    """Return which of these queues no job was ever put into, even if a worker has registered them. One round trip."""
    return _over(using)._run(_never_used(list(queues), using))


def counts_of(queues: Iterable[str], *, using: str = "default", errors: Errors | None = None) -> dict[str, Counts]:
    """Return how many jobs are in each state, for each queue at one moment. One round trip.

    See reports_of() for ``errors``.
    """
    return _over(using)._run(_counts(list(queues), using, errors))


async def acounts_of(
    queues: Iterable[str], *, using: str = "default", errors: Errors | None = None
) -> dict[str, Counts]:
    """See counts_of()."""
    return await _over(using)._arun(_counts(list(queues), using, errors))


def reports_of(
    queues: Iterable[str], *, minutes: int = 30, using: str = "default", errors: Errors | None = None
) -> dict[str, Report]:
    """Return how queues are doing, with their numbers of the last minutes, at most 4320. One round trip.

    A queue that can't be read, as a key of it is of a wrong type, raises its error; where there is a dict for
    ``errors``, that takes it by the queue's name, and the other queues are returned.
    """
    return _over(using)._run(_reports(list(queues), minutes, using, errors))


async def areports_of(
    queues: Iterable[str], *, minutes: int = 30, using: str = "default", errors: Errors | None = None
) -> dict[str, Report]:
    """See reports_of()."""
    return await _over(using)._arun(_reports(list(queues), minutes, using, errors))


def workers(
    queues: Iterable[str] | None = None, *, using: str = "default", errors: Errors | None = None
) -> list[Worker]:
    """Return who works on these queues, by default on all: at most 100 of each. One round trip, two for all.

    A queue that can't be read, as a key of it is of a wrong type, is left out. A dict for ``errors`` takes its error by
    the queue's name; without one the error is logged, once a minute.
    """
    return _over(using)._run(_workers(queues, using, errors))


async def aworkers(
    queues: Iterable[str] | None = None, *, using: str = "default", errors: Errors | None = None
) -> list[Worker]:
    """See workers()."""
    return await _over(using)._arun(_workers(queues, using, errors))


def order(worker: str, word: Order, *, using: str = "default") -> bool:
    """Order a worker to be quiet, to claim no more, to work again, or to stop; say whether it is there.

    Its ``rk_worker`` obeys with its next beat; an order that nobody took within a minute is void. The id of a
    supervisor does as well as that of any of its workers. Three round trips.
    """
    return _over(using)._run(_order(worker, word, using))


async def aorder(worker: str, word: Order, *, using: str = "default") -> bool:
    """See order()."""
    return await _over(using)._arun(_order(worker, word, using))


def _over(using: str) -> _Overview:
    return _Overview("all", using=using)


def _bases(queues: Sequence[str], using: str) -> list[str]:
    return [Queue(name, using=using).key("") for name in queues]


def _names() -> Flow[list[str]]:
    found = yield Call("SMEMBERS", names.key())
    used = sorted(name.decode("utf-8", "replace") for name in found)
    return [*dict.fromkeys([*conf.section(QueueSettings).NAMES, *filter(_is_name, used)])]


def _never_used(queues: Sequence[str], using: str) -> Flow[set[str]]:
    # A worker's sweep creates the counter with 0, and a job that was only ever scheduled has not counted yet.
    keys = [(f"{base}sequence", f"{base}jobs") for base in _bases(queues, using)]
    found = yield Batch([call for counter, jobs in keys for call in (Call("GET", counter), Call("EXISTS", jobs))])
    return {name for place, name in enumerate(queues) if found[2 * place] in (None, b"0") and not found[2 * place + 1]}


def _is_name(name: str) -> bool:
    try:
        encode(name)
    except InvalidName:
        return False
    return True


def _counts(queues: list[str], using: str, errors: Errors | None) -> Flow[dict[str, Counts]]:
    replies = yield Batch([calls.COUNT(base) for base in _bases(queues, using)], lenient=errors is not None)
    return {name: Counts(*reply) for name, reply in _readable(queues, replies, errors)}


def _readable(queues: list[str], replies: list[Any], errors: Errors | None) -> Iterator[tuple[str, Any]]:
    """Yield the replies by queue; ``errors`` takes those that are errors."""
    for name, reply in zip(queues, replies, strict=True):
        if errors is not None and isinstance(reply, RedisFailure):
            errors[name] = reply
        else:
            yield name, reply


def _reports(queues: list[str], minutes: int, using: str, errors: Errors | None) -> Flow[dict[str, Report]]:
    validation.whole("minutes", minutes, MINUTES)
    steps = [calls.QUEUE_STATS(base, minutes) for base in _bases(queues, using)]
    replies = yield Batch(steps, lenient=errors is not None)
    return {name: _report(reply) for name, reply in _readable(queues, replies, errors)}


def _report(reply: list[Any]) -> Report:
    wait = None if reply[4] < 0 else reply[4] / 1000
    done, failed, begun, late, latest = (reply[at::5] for at in range(11, 16))
    return Report(
        Counts(*reply[:4]),
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
        unknown.read(reply[10]),
    )


def _workers(queues: Iterable[str] | None, using: str, errors: Errors | None = None) -> Flow[list[Worker]]:
    looked_at = (yield from _names()) if queues is None else list(queues)
    steps = [calls.LIST_WORKERS(base, MOST_WORKERS, MOST_BYTES) for base in _bases(looked_at, using)]
    replies = yield Batch(steps, lenient=True)
    found: dict[str, Worker] = {}
    for name, reply in zip(looked_at, replies, strict=True):
        if isinstance(reply, RedisFailure):
            _left_out(name, reply, errors)
            continue
        for at in range(0, len(reply), 4):
            one = workerinfo.worker(name, *reply[at : at + 4])
            found[one.id] = workerinfo.merged(found[one.id], one) if one.id in found else one
    return sorted(found.values())


def _left_out(queue: str, error: RedisFailure, errors: Errors | None) -> None:
    if errors is not None:
        errors[queue] = error
    elif not isinstance(error, KeyConflict):
        raise error
    elif _log_limit.allows(queue):
        logger.error("Workers of queue %a are not listed: %s", queue, error)


def _order(worker: str, word: str, using: str) -> Flow[bool]:
    validation.identifier("worker", worker)
    validation.one_of("word", word, get_args(Order))
    found = [one for one in (yield from _workers(None, using)) if worker in (one.id, one.supervisor)]
    places = [(base, one.id) for one in found for base in _bases(one.queues, using)]
    replies = (yield Batch([calls.order(base, id, word) for base, id in places])) if places else []
    return any(replies)
