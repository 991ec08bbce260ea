"""All that is stored about one job: its state, its record, and the result of its call."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from redis_kit.core.flow import Flow
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.steps import Batch, Call
from redis_kit.queues import validation
from redis_kit.queues.engine import history, ids, job, payload
from redis_kit.queues.engine.feature import all_parts, features
from redis_kit.queues.engine.history import History
from redis_kit.queues.engine.job import JobInfo, Record
from redis_kit.queues.engine.spread import spread
from redis_kit.queues.errors import CorruptMessage
from redis_kit.queues.management import manage
from redis_kit.queues.queue import Queue, over
from redis_kit.queues.tasks import progress as stored_progress
from redis_kit.queues.tasks.progress import Progress

DETAILS = "details"  # the part of a script
MOST_ERRORS = 10
MOST_BYTES = 300_000  # of one text


class AttemptError(NamedTuple):
    """The error of an attempt: the path of the exception's class, and the traceback. ``attempt`` counts from 1."""

    attempt: int
    kind: str
    traceback: str


class Snoozes(NamedTuple):
    """How often a task raised Snooze for a job, when it last did, and what it said then."""

    times: int
    last: datetime | None
    why: str


class StoredResult(NamedTuple):
    """The result of a call. ``value`` is as it is stored, b"" without one."""

    status: str
    ended: datetime | None
    value: bytes
    progress: Progress | None
    cancelled: AttemptError | None
    errors: list[AttemptError]
    snoozes: Snoozes | None = None


class JobDetails(NamedTuple):
    """One job. ``job`` is None if it has ended, ``history`` if it stores no result, ``record`` if nothing is stored.

    ``key`` is the unique key that the job holds and ``until`` how long, both "" without a key; ``cancelling`` is
    True if the job is cancelled and its worker has not stopped it yet. In ``alone`` crashes of processes it ran alone;
    ``beside`` has the queue and id of each job that ran with it in the last other one. ``extras`` are the replies to
    the steps of features, by their names.
    """

    job: JobInfo | None
    record: Record | None
    history: History | None
    result: StoredResult
    key: str = ""
    until: str = ""
    cancelling: bool = False
    alone: int = 0
    beside: Sequence[tuple[str, str]] = ()
    extras: Mapping[str, Any] = {}


def look_up(queues: Sequence[str], id: str, *, using: str = "default") -> tuple[str, JobDetails | None]:
    """Return the first of these queues that has a job or its result, and its details; else the first queue and None.

    Raises InvalidName and InvalidValue.
    """
    return over(using).run_flow(_look_up(queues, validation.identifier("id", id), using))


def _look_up(queues: Sequence[str], id: str, using: str) -> Flow[tuple[str, JobDetails | None]]:
    existing = yield from spread().existing(queues)
    places = [(queue, shard) for queue in queues for shard in (*existing[queue], ids.part_of(queue, id) or queue)]
    names = list(dict.fromkeys(places))
    lookups = [_steps(Queue(shard, using=using).key(""), id) for _, shard in names]
    replies = iter((yield Batch([step for lookup in lookups for step in lookup.values()])))
    for (queue, _), lookup in zip(names, lookups, strict=True):
        named = dict(zip(lookup, replies, strict=False))
        if details := _details(named.pop(DETAILS), queue, named):
            return queue, details
    return queues[0], None


def _steps(base: str, id: str) -> dict[str, ScriptCall | Call]:
    """Return the steps that read all about a job, those of features by their names."""
    args = (id, manage.LOOKED_THROUGH, MOST_ERRORS, MOST_BYTES)
    of_features = {feature.name: feature.job_step(base, id) for feature in features()}
    return {
        DETAILS: manage.GET_JOB(base, *args, job=id, parts=all_parts() | {DETAILS}),
        **{name: step for name, step in of_features.items() if step},
    }


def _details(reply: list[Any], queue: str, extras: Mapping[str, Any]) -> JobDetails | None:
    """Return the details in the replies to the steps for a queue; None without a job and a result."""
    stored = manage.job_info(reply[0])
    record, status, at, value, progress, cancelled, snoozed, owned, cancelling, crashed, *stored_errors = reply[1:]
    if stored is None and not status:
        return None
    parts = job.read(record) if record else None
    pairs = zip(stored_errors[::2], stored_errors[1::2], strict=True)
    errors = [error for number, text in pairs if (error := _error(number, text))]
    reported, cause = stored_progress.loads(progress), _error(0, cancelled)
    result = StoredResult(_text(status), _moment(at), value, reported, cause, errors, _snoozes(snoozed))
    until, _, key = _text(owned).partition(" ")
    call_history = history.read(parts.history) if parts else None
    alone, beside = _crashes(crashed, queue, stored) if stored and stored.crashes else (0, [])
    return JobDetails(stored, parts, call_history, result, key, until, bool(cancelling), alone, beside, extras)


def _error(attempt: int, error: bytes) -> AttemptError | None:
    if not error:
        return None
    try:
        return AttemptError(attempt, *payload.loads_error(error))
    except CorruptMessage:
        return AttemptError(attempt, "?", _text(error))


def _crashes(crashed: bytes, queue: str, stored: JobInfo) -> tuple[int, list[tuple[str, str]]]:
    alone, *lines = _text(crashed).split("\n")
    # Scripts don't know the name of their queue, and write none for it.
    beside = [(name or queue, id) for name, _, id in (line.rpartition("/") for line in lines) if id != stored.id]
    return int(alone) if alone.isdigit() and len(alone) < 16 else 0, beside


def _snoozes(stored: bytes) -> Snoozes | None:
    times, _, rest = stored.partition(b" ")
    moment, _, why = rest.partition(b" ")
    return Snoozes(int(times), _moment(moment), _text(why)) if times.isdigit() and len(times) < 16 else None


def _moment(milliseconds: bytes) -> datetime | None:
    try:
        return history.ended_at(milliseconds) if milliseconds else None
    except (ValueError, OverflowError):
        return None


def _text(text: bytes) -> str:
    return text.decode("utf-8", "backslashreplace")
