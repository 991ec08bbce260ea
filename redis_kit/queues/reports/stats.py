"""Many queues in one round trip, on a Redis Cluster in one for each node: sizes, waits, history, hand-overs."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from operator import mul
from typing import Any, NamedTuple

from redis_kit.core import conf
from redis_kit.core.errors import InvalidName, RedisFailure
from redis_kit.core.flow import Flow, operation, twin
from redis_kit.core.keys import encode
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.steps import Batch, Call
from redis_kit.core.values.numbers import whole_number
from redis_kit.core.values.sequences import batched, several
from redis_kit.queues.engine import enqueue
from redis_kit.queues.engine.calls import QueueScript
from redis_kit.queues.engine.job import PauseInfo, QueueCounts, pause, summed
from redis_kit.queues.engine.spread import spread
from redis_kit.queues.keys import names_key
from redis_kit.queues.management import manage
from redis_kit.queues.queue import Queue, over
from redis_kit.queues.reports import unknown_calls
from redis_kit.queues.reports.unknown_calls import UnknownCalls
from redis_kit.queues.settings import QueueSettings, whole

QUEUE_STATS = QueueScript("queue_stats", __package__)
MINUTES = (1, 4320)
Errors = dict[str, RedisFailure]


class QueueStats(NamedTuple):
    """How a queue is doing.

    - ``wait``: seconds for which the next ready job, the first scheduled job, or a job that waits for a limit has been
      due, whichever is longest; None without a job.
    - ``done`` and ``failed``: jobs and attempts in each minute up to ``minute``, the present one, counted since 1970.
    - ``begun``: attempts that began in each minute; ``lateness`` and ``latest``: seconds from the time for which these
      were due to their claims, on average and at most.
    - ``paused``: None if the queue gives out jobs.
    - ``workers``: living workers, without processes for one job that runs alone; ``quiet``: those among the first 100
      that claim no jobs, as they are quiet or stopping.
    - ``unknown``: the calls that workers returned as they can't run them; first those that no living worker can run.
    - ``refused``: why the server refuses writes to it, such as "OOM ..."; "" if it takes them.
    - ``shards``: over how many slots the queue is spread. The workers are then those that work on all of them.
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
    shards: int = 1
    refused: str = ""

    @property
    def claiming(self) -> int:
        """Return how many living workers claim jobs of the queue."""
        return self.workers - self.quiet

    @property
    def deserted(self) -> bool:
        """Return whether jobs are due and no living worker claims jobs of the queue."""
        return self.wait is not None and self.claiming <= 0


class QueueHistory(NamedTuple):
    """The numbers of a queue in each hour up to ``hour``, the present one, counted since 1970.

    - ``done`` and ``failed``: jobs and attempts.
    - ``begun``: attempts that began; ``lateness`` and ``latest``: seconds from the time for which these were due to
      their claims, on average and at most.
    """

    hour: int
    done: list[int]
    failed: list[int]
    begun: list[int]
    lateness: list[float]
    latest: list[float]

    @property
    def minute(self) -> int:
        """Return the last minute of the present hour, counted since 1970."""
        return 60 * self.hour + 59


@operation(over=over)
def queue_names(*, using: str = "default") -> Flow[list[str]]:
    """Return the names of all queues: those in ``NAMES``, then those that were used or that a worker serves.

    One round trip. A queue with shards has one name. ``rk_worker`` removes a name that was never used when it stops.
    """
    return read_names()


def never_used(queues: Sequence[str]) -> Flow[set[str]]:
    """Return which of these queues no job was ever put into, even if a worker has registered them. One round trip."""
    names = yield from spread().existing(queues)
    unused = yield from enqueue.never_used([Queue(name) for name in chain.from_iterable(names.values())])
    missing = {queue.name for queue in unused}
    return {queue for queue, shards in names.items() if missing.issuperset(shards)}


@operation(over=over)
def queue_counts(
    queues: Iterable[str], *, using: str = "default", errors: Errors | None = None
) -> Flow[dict[str, QueueCounts]]:
    """Return how many jobs are in each state, for each queue at one moment, and for one with shards almost.

    One round trip, and one more if the settings name SHARDS of a queue. See queue_stats() for ``errors``.
    """
    replies = yield from _of_readable(several(queues, "queues"), using, manage.count_step, errors)
    return {name: summed([QueueCounts(*reply) for reply in parts]) for name, parts in replies.items()}


@operation(over=over)
def queue_stats(
    queues: Iterable[str], *, minutes: int = 30, using: str = "default", errors: Errors | None = None
) -> Flow[dict[str, QueueStats]]:
    """Return how queues are doing, with their numbers of the last minutes, at most 4320.

    One round trip, and one more if the settings name SHARDS of a queue.

    A queue with a key of a wrong type raises KeyConflict. With a dict for ``errors``, the error is stored there by the
    queue's name, and the other queues are returned.
    """
    return read_reports(several(queues, "queues"), minutes, using, errors)


def bases(queues: Iterable[str], using: str) -> list[str]:
    """Return the beginnings of the keys of queues or shards."""
    return [Queue(name, using=using).key("") for name in queues]


def read_names() -> Flow[list[str]]:
    """Read the names of all queues. One round trip."""
    members = yield Call("SMEMBERS", names_key())
    used = sorted(name.decode("utf-8", "replace") for name in members)
    return [*dict.fromkeys([*conf.section(QueueSettings).NAMES, *map(whole, filter(_is_name, used))])]


def of_all(
    queues: Iterable[str], using: str, step: Callable[[str], ScriptCall | Call], *, lenient: bool = True
) -> Flow[list[tuple[str, Any]]]:
    """Return the reply of each shard with the name of its queue; if ``lenient``, an error may be in its place."""
    names = yield from spread().existing(queues)
    places = [(queue, part) for queue, parts in names.items() for part in parts]
    steps = [step(base) for base in bases([part for _, part in places], using)]
    replies = (yield Batch(steps, lenient=lenient)) if steps else []
    return [(queue, reply) for (queue, _), reply in zip(places, replies, strict=True)]


def _is_name(name: str) -> bool:
    try:
        encode(name)
    except InvalidName:
        return False
    return True


def read_reports(
    queues: Iterable[str], minutes: int, using: str, errors: Errors | None = None
) -> Flow[dict[str, QueueStats]]:
    """See queue_stats()."""
    whole_number("minutes", minutes, MINUTES)
    replies = yield from _of_readable(queues, using, lambda base: QUEUE_STATS(base, minutes), errors)
    return {name: read_report(parts, minutes) for name, parts in replies.items()}


def _of_readable(
    queues: Iterable[str], using: str, step: Callable[[str], ScriptCall | Call], errors: Errors | None
) -> Flow[dict[str, list[Any]]]:
    """Return the replies by queue; ``errors`` takes the first error of a queue, which is left out then."""
    failed: Errors = {}
    replies: dict[str, list[Any]] = {}
    for name, reply in (yield from of_all(queues, using, step, lenient=errors is not None)):
        if isinstance(reply, RedisFailure):
            failed.setdefault(name, reply)
        replies.setdefault(name, []).append(reply)
    if errors is not None:
        errors |= failed
    return {name: parts for name, parts in replies.items() if name not in failed}


def read_report(replies: Sequence[list[Any]], minutes: int) -> QueueStats:
    """Return the replies of QUEUE_STATS for all shards of a queue as one report."""
    reports = [_read_reply(reply, minutes) for reply in replies]
    return reports[0] if len(reports) == 1 else merged(reports)


def _read_reply(reply: list[Any], minutes: int) -> QueueStats:
    wait = None if reply[4] < 0 else reply[4] / 1000
    done, failed, begun, late, latest = by_minute = [[0] * minutes for _ in range(5)]
    for place, *numbers in batched(reply[12:], 6):
        for each, number in zip(by_minute, numbers, strict=True):
            each[place] = number
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
        refused=reply[11].decode("utf-8", "replace").lstrip("-").partition(" script: ")[0],
    )


def merged(reports: Sequence[QueueStats]) -> QueueStats:
    """Return how several queues, or the shards of one, are doing together."""
    waits = [report.wait for report in reports if report.wait is not None]
    begun = [sum(same) for same in _by_minute(reports, "begun")]
    late = [map(mul, report.begun, report.lateness) for report in reports]
    return QueueStats(
        summed([report.counts for report in reports]),
        max(waits, default=None),
        reports[0].minute,
        [sum(same) for same in _by_minute(reports, "done")],
        [sum(same) for same in _by_minute(reports, "failed")],
        begun,
        [sum(same) / max(1, count) for same, count in zip(zip(*late, strict=True), begun, strict=True)],
        [max(same) for same in _by_minute(reports, "latest")],
        next((report.paused for report in reports if report.paused), None),
        *min((report.workers, report.quiet) for report in reports),
        unknown_calls.merged(call for report in reports for call in report.unknown),
        len(reports),
        next((report.refused for report in reports if report.refused), ""),
    )


def _by_minute(reports: Sequence[QueueStats], name: str) -> Iterator[tuple[Any, ...]]:
    return zip(*(getattr(report, name) for report in reports), strict=True)


aqueue_names = twin(queue_names)
aqueue_counts = twin(queue_counts)
aqueue_stats = twin(queue_stats)
