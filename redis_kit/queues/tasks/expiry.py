"""Jobs that nobody wants any more when they have waited for too long. The server's clock decides."""

from typing import TYPE_CHECKING, Any

from redis_kit.core.errors import InvalidValue, RedisKitError
from redis_kit.core.text import shortened
from redis_kit.queues import validation
from redis_kit.queues.jobs.job import Job
from redis_kit.queues.jobs.message import Message

if TYPE_CHECKING:
    from redis_kit.queues.tasks.task import Task


class Expired(RedisKitError):
    """A job had waited for longer than its task's ``expires`` allows, so it did not run: the error of its result."""


def milliseconds(task: "Task[..., Any]") -> int:
    """Return for how long a call of a task may wait; 0 for ever. Raises InvalidValue."""
    if task.expires is None:
        return 0
    try:
        time = validation.milliseconds(task.expires, "expires")
    except InvalidValue:
        time = 0
    if not time:
        allowed = f"more than 0 and at most {validation.LONGEST_DELAY:,} seconds, or a timedelta; None is for ever"
        raise InvalidValue(f"expires must be {allowed}. It is {shortened(task.expires)}.")
    return time


def expired(job: Job, call: Message) -> Expired | None:
    """Return the error of a job that began too late after it was due; None for one in time.

    One with which a worker died had begun in time, so it runs again.
    """
    late = job.claimed - job.due
    if not call.expires or job.crashes or late * 1000 <= call.expires:
        return None
    return Expired(f"it was to begin within {call.expires / 1000:g} s and could not before {late:.1f} s")
