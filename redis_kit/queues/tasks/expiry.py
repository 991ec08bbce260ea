"""Expiry: a job that has waited for too long does not run. The server's clock decides."""

from typing import Any

from redis_kit.core.text import number
from redis_kit.queues import validation
from redis_kit.queues.engine.job import Job
from redis_kit.queues.engine.message import Message
from redis_kit.queues.errors import Expired


def milliseconds(expires: Any) -> int:
    """Return for how many ms a call may wait, given the option of its task; 0 for ever. Raises InvalidValue."""
    if expires is None:
        return 0
    return validation.milliseconds(expires, "expires", positive=True)


def expired(job: Job, call: Message) -> Expired | None:
    """Return the error of a job that was claimed too late after it was due; None if it was claimed in time.

    A job that was running when its worker died had begun in time, so it runs again.
    """
    late = job.claimed - job.due
    if not call.expires or job.crashes or late * 1000 <= call.expires:
        return None
    return Expired(f"it was to begin within {number(call.expires / 1000)} s, and its turn came after {late:.1f} s")
