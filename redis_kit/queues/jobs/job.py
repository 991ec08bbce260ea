"""What a queue hands out: jobs, and numbers about them."""

import re
from typing import Any, Literal, NamedTuple

from redis_kit.queues.errors import CorruptMessage
from redis_kit.queues.jobs import message
from redis_kit.queues.jobs import payload as serializers

State = Literal["scheduled", "ready", "running", "done", "dead"]
NAME = 100  # characters of an error's name
_HEAD = re.compile(rb"(-?\d{1,3}) (\d{1,15}) (\d{1,15}) (\d{1,16})\n")


class QueueCounts(NamedTuple):
    """How many jobs of a queue are in each state."""

    scheduled: int
    ready: int
    running: int
    dead: int


class PauseInfo(NamedTuple):
    """Since when a queue gives out no jobs, in seconds since 1970 on the server's clock, and for how many more seconds.

    ``ends_in`` is None where somebody has to resume it.
    """

    since: float
    ends_in: float | None


class Record(NamedTuple):
    """What Redis holds of a job."""

    priority: int
    attempts: int
    crashes: int
    due: float
    body: bytes
    story: bytes = b""


class Job(NamedTuple):
    """A claimed job. Whoever has it may end it with ``ack()`` or ``nack()``.

    ``attempt`` counts from 1, with the present claim; ``crashes`` says how many workers died with it; ``due`` is when
    it was to start, and ``claimed`` when it was claimed, in seconds since 1970 on the server's clock.
    """

    id: str
    body: bytes
    token: str
    attempt: int = 1
    crashes: int = 0
    priority: int = 0
    due: float = 0.0
    story: bytes = b""  # of a job whose result is stored: see history.py
    claimed: float = 0.0

    @property
    def payload(self) -> Any:
        """Return what was put. Raises CorruptMessage where that can't be read."""
        return _payload(self.id, self.body)


class JobInfo(NamedTuple):
    """A job as it lies in the queue. ``attempts`` counts those begun, ``crashes`` the workers that died with it.

    ``due`` is when it was or is to start, in seconds since 1970 on the server's clock. ``worker`` has it where it is
    running; ``died`` and ``reason`` say when and why it died where it is dead.
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

    @property
    def payload(self) -> Any:
        """Return what was put. Raises CorruptMessage where that can't be read."""
        return _payload(self.id, self.body)


class Cause(NamedTuple):
    """Why a job died; ``task`` is "" if it names none, ``error`` if no reason was given."""

    task: str
    error: str


def cause(job: JobInfo) -> Cause:
    """Return why a job died. The first bytes of its body are enough."""
    return Cause(message.task_of(job.body), job.reason.partition(":")[0].strip()[:NAME])


def read(record: bytes) -> Record:
    """Return the parts of a stored record; one with a broken head is all body."""
    if not (head := _HEAD.match(record)):
        return Record(0, 0, 0, 0.0, record)
    priority, attempts, crashes, due = map(int, head.groups())
    body, story = record[head.end() :], b""
    if body.startswith(b"~"):
        story, _, body = body.partition(b"\n")
    return Record(priority, attempts, crashes, due / 1000, body, story)


def member(job: Job) -> bytes:
    """Return how the server names a claim among those that run."""
    return f"{job.token}/{job.id}".encode("utf-8", "surrogateescape")


def claimed(reply: bytes, at: int, claim: str, now: float) -> list[Job]:
    """Return the jobs of a reply from ``at`` on: a line of number, place and lengths, id and record of each."""
    jobs = []
    while at < len(reply):
        line = reply.index(b"\n", at)
        number, place, id_size, size = reply[at:line].split(b" ")
        middle = line + 1 + int(id_size)
        at = middle + int(size)
        id, found = _text(reply[line + 1 : middle]), read(reply[middle:at])
        jobs.append(
            Job(
                id,
                found.body,
                f"{claim}.{number.decode()}/{place.decode()}",
                found.attempts,
                found.crashes,
                found.priority,
                found.due,
                found.story if id.isascii() else b"",
                now,
            )
        )
    return jobs


def stored(state: State, reply: list[Any]) -> list[JobInfo]:
    """Return the jobs of a reply that holds id, record, time of death, reason and worker of each."""
    return [_stored(state, *reply[at : at + 5]) for at in range(0, len(reply), 5)]


def pause(since: int, left: int) -> PauseInfo | None:
    """Return a pause, given in ms; None where it began at -1."""
    return None if since < 0 else PauseInfo(since / 1000, None if left < 0 else left / 1000)


def _stored(state: State, id: bytes, record: bytes, died: bytes, reason: bytes, worker: bytes) -> JobInfo:
    found = read(record)
    return JobInfo(
        _text(id),
        state,
        found.body,
        found.priority,
        found.attempts,
        found.crashes,
        found.due,
        worker.decode("utf-8", "replace") or None,
        float(died) / 1000 if died else None,
        reason.decode("utf-8", "backslashreplace"),
    )


def _payload(id: str, body: bytes) -> Any:
    try:
        return serializers.loads(body)
    except CorruptMessage as error:
        raise CorruptMessage(f"The payload of job {id!a} is damaged: {error}") from error


def _text(id: bytes) -> str:
    # Bytes that the kit never writes come back as they were, so that even such a job can be ended.
    return id.decode("utf-8", "surrogateescape")
