"""Jobs as a queue gives them out, and the codec of their records in Redis."""

import re
import struct
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from redis_kit.core.values.sequences import batched
from redis_kit.queues.engine import message
from redis_kit.queues.engine import payload as serializers
from redis_kit.queues.engine.history import last_begun
from redis_kit.queues.errors import CorruptMessage

State = Literal["scheduled", "ready", "running", "done", "dead"]
LONGEST_WAIT = 86_400_000  # ms: threads can't wait for ever, and something else may have written a time far ahead
NAME = 100  # characters of an error's name
_LENGTHS = struct.Struct(">BII")
_HEAD = re.compile(rb"(-?\d{1,3}) (\d{1,15}) (\d{1,15}) (\d{1,16})\n")


class QueueCounts(NamedTuple):
    """How many jobs of a queue are in each state."""

    scheduled: int
    ready: int
    running: int
    dead: int


def summed(counts: Iterable[QueueCounts]) -> QueueCounts:
    """Return how many jobs of all parts of a queue are in each state."""
    return QueueCounts(*map(sum, zip(*counts, strict=True)))


class PauseInfo(NamedTuple):
    """When a queue was paused, in seconds since 1970 on the server's clock, and in how many seconds the pause ends.

    ``ends_in`` is None if the queue stays paused until it is resumed.
    """

    since: float
    ends_in: float | None


class Record(NamedTuple):
    """The record of a job in Redis, in its parts."""

    priority: int
    attempts: int
    crashes: int
    due: float
    body: bytes
    history: bytes = b""


class Job(NamedTuple):
    """A claimed job, to be ended with ``ack()`` or ``nack()``.

    ``attempt`` counts from 1, with the present claim; ``crashes`` in how many processes that died it ran; ``due`` is
    when it was to start, and ``claimed`` when it was claimed, in seconds since 1970 on the server's clock.
    """

    id: str
    body: bytes
    token: str
    attempt: int = 1
    crashes: int = 0
    priority: int = 0
    due: float = 0.0
    history: bytes = b""  # of a job whose result is stored: see history.py
    claimed: float = 0.0
    shard: str = ""  # from which claim() took it, of a queue with several parts

    @property
    def payload(self) -> Any:
        """Return the payload as it was put. Raises CorruptMessage if it can't be read."""
        return _payload(self.id, self.body)


class JobInfo(NamedTuple):
    """A job as it is stored. ``attempts`` counts those begun, ``crashes`` the processes that died with it.

    ``due`` is when it was or is to start next, in seconds since 1970 on the server's clock. ``begun`` is when its last
    attempt began, None if the job stores no result. ``worker`` is the worker of a running job; ``died`` and ``reason``
    are when and why a dead job died. ``reason`` of a ready job is the limit for which it waits, as that is used up.
    """

    id: str
    state: State
    body: bytes
    priority: int
    attempts: int
    crashes: int
    due: float
    worker: str | None = None
    died: float | None = None
    reason: str = ""
    begun: float | None = None

    @property
    def payload(self) -> Any:
        """Return the payload as it was put. Raises CorruptMessage if it can't be read."""
        return _payload(self.id, self.body)


class Cause(NamedTuple):
    """Why a job died; ``task`` is "" if it names none, ``error`` if no reason was given."""

    task: str
    error: str


def cause(job: JobInfo) -> Cause:
    """Return why a job died. The first bytes of its body are enough."""
    return Cause(message.task_of(job.body), error_of(job.reason))


def error_of(reason: str) -> str:
    """Return the name of the error for which a job died, given the reason."""
    return reason.partition(":")[0].strip()[:NAME]


def read(record: bytes) -> Record:
    """Return the parts of a stored record; one with a broken head is all body."""
    return Record(*_parts(record, 0, len(record)))


def _parts(reply: bytes, start: int, end: int) -> tuple[int, int, int, float, bytes, bytes]:
    """Return the parts of the record that is there in a reply. A Record costs as much as reading it."""
    if not (head := _HEAD.match(reply, start, end)):
        return 0, 0, 0, 0.0, reply[start:end], b""
    priority, attempts, crashes, due = head.groups()
    body, history = reply[head.end() : end], b""
    if body.startswith(b"~"):
        history, _, body = body.partition(b"\n")
    return int(priority), int(attempts), int(crashes), int(due) / 1000, body, history


def seconds(milliseconds: float) -> float | None:
    """Return milliseconds, which may be infinite, as seconds, a day at most; None for -1."""
    return None if milliseconds < 0 else min(milliseconds, LONGEST_WAIT) / 1000


def member(job: Job) -> bytes:
    """Return the name of a claim among the running jobs."""
    return f"{job.token}/{job.id}".encode("utf-8", "surrogateescape")


def claimed(reply: bytes, at: int, claim: str, now: float) -> list[Job]:
    """Return the jobs of a reply from ``at`` on: the lengths of place, id and record of each, and these."""
    jobs = []
    while at < len(reply):
        place_size, id_size, size = _LENGTHS.unpack_from(reply, at)
        place = at + _LENGTHS.size
        name = place + place_size
        middle = name + id_size
        at = middle + size
        id, token = _text(reply[name:middle]), f"{claim}/{reply[place:name].decode()}"
        priority, attempts, crashes, due, body, history = _parts(reply, middle, at)
        history = history if id.isascii() else b""
        jobs.append(Job(id, body, token, attempts, crashes, priority, due, history, now))
    return jobs


def stored(state: State, reply: list[Any]) -> list[JobInfo]:
    """Return the jobs of a reply that holds id, record, time of its death or next start, reason and worker of each."""
    return [_stored(state, *parts) for parts in batched(reply, 5)]


def pause(since: int, left: int) -> PauseInfo | None:
    """Return a pause, given in ms; None if it began at -1."""
    return None if since < 0 else PauseInfo(since / 1000, None if left < 0 else left / 1000)


def _stored(state: State, id: bytes, record: bytes, at: bytes, reason: bytes, worker: bytes) -> JobInfo:
    parts = read(record)
    moment = float(at) / 1000 if at else None
    # The record of a job that expires keeps when it was first due.
    due, died = (moment or parts.due, None) if state == "scheduled" else (parts.due, moment)
    return JobInfo(
        _text(id),
        state,
        parts.body,
        parts.priority,
        parts.attempts,
        parts.crashes,
        due,
        worker.decode("utf-8", "replace") or None,
        died,
        reason.decode("utf-8", "backslashreplace"),
        last_begun(parts.history),
    )


def _payload(id: str, body: bytes) -> Any:
    try:
        return serializers.loads(body)
    except CorruptMessage as error:
        raise CorruptMessage(f"The payload of job {id!a} is damaged: {error}") from error


def _text(id: bytes) -> str:
    # Bytes that redis_kit never writes come back unchanged, so that a job with this id can be acknowledged, too.
    return id.decode("utf-8", "surrogateescape")
