"""All that is known of one job: where it is, what it was told, and what became of it."""

from datetime import datetime
from typing import Any, NamedTuple

from redis_kit.core.primitive import Primitive
from redis_kit.core.scripts import ScriptCall
from redis_kit.queues import validation
from redis_kit.queues.errors import CorruptMessage
from redis_kit.queues.jobs import history as story
from redis_kit.queues.jobs import job, payload
from redis_kit.queues.jobs import progress as stored_progress
from redis_kit.queues.jobs.history import History
from redis_kit.queues.jobs.job import JobInfo, Record
from redis_kit.queues.jobs.progress import Progress
from redis_kit.queues.store import calls, manage

MOST_ERRORS = 10
MOST_BYTES = 300_000  # of one text


class Told(NamedTuple):
    """What an attempt ended with: the path of the exception's class, and the traceback. ``attempt`` counts from 1."""

    attempt: int
    kind: str
    traceback: str


class Outcome(NamedTuple):
    """What became of a call. ``value`` is as it is stored, b"" without one."""

    status: str
    ended: datetime | None
    value: bytes
    progress: Progress | None
    cancelled: Told | None
    errors: list[Told]


class Known(NamedTuple):
    """``job`` is None where it has ended; ``story`` where no result is stored, ``record`` where nothing is known.

    ``key`` is the unique key that the job holds and ``until`` until when, both "" without one; ``cancelling`` says
    whether its worker has yet to hear that it is cancelled.
    """

    job: JobInfo | None
    record: Record | None
    story: History | None
    outcome: Outcome
    key: str = ""
    until: str = ""
    cancelling: bool = False


def steps(queue: Primitive, id: str) -> list[ScriptCall]:
    """Return the steps that look at a job. Raises InvalidValue."""
    wanted = validation.identifier("id", id)
    return [manage.get_step(queue, wanted), calls.get_job_details(queue.key(""), wanted, MOST_ERRORS, MOST_BYTES)]


def known(found: list[bytes], examined: list[Any]) -> Known | None:
    """Return what the replies to steps() tell; None where there is neither a job nor a result."""
    stored = manage.found(found)
    record, status, at, value, progress, cancelled, owned, cancelling, *errors = examined
    if stored is None and not status:
        return None
    parts = job.read(record) if record else None
    pairs = zip(errors[::2], errors[1::2], strict=True)
    told = [one for number, error in pairs if (one := _told(number, error))]
    outcome = Outcome(_text(status), _moment(at), value, stored_progress.loads(progress), _told(0, cancelled), told)
    until, _, key = _text(owned).partition(" ")
    about = story.read(parts.story) if parts else None
    return Known(stored, parts, about, outcome, key, until, bool(cancelling))


def _told(attempt: int, error: bytes) -> Told | None:
    if not error:
        return None
    try:
        kind, traceback = payload.loads(error)
    except (CorruptMessage, TypeError, ValueError):
        kind, traceback = "?", _text(error)
    return Told(attempt, str(kind), str(traceback))


def _moment(milliseconds: bytes) -> datetime | None:
    try:
        return story.milliseconds(int(float(milliseconds))) if milliseconds else None
    except (ValueError, OverflowError):
        return None


def _text(text: bytes) -> str:
    return text.decode("utf-8", "backslashreplace")
