"""Attempts of jobs that this worker can't run: the job goes back, for another worker that may have the code for it."""

from functools import partial
from operator import attrgetter
from typing import Any

from redis_kit.core import conf
from redis_kit.core.flow import Flow
from redis_kit.core.logs.error_text import text_of
from redis_kit.core.primitive import Primitive
from redis_kit.queues.engine.calls import End
from redis_kit.queues.engine.claim import settle_one
from redis_kit.queues.engine.job import Job, member
from redis_kit.queues.errors import Cancelled, NewerMessage
from redis_kit.queues.reports import unknown_calls
from redis_kit.queues.settings import QueueSettings
from redis_kit.queues.worker.run.attempt import Attempt, Middleware
from redis_kit.queues.worker.run.endings import FailedAttempt, Postponed

RETURNED, EXHAUSTED, CANCELLED = 2, 5, 6
SHAPES = 100  # of calls, remembered for a queue


def defer(queue: Primitive, job: Job, shape: str, expires: int) -> Flow[int]:
    """Return a job, for workers that can run it. Raises LeaseLost."""
    longest = int(conf.section(QueueSettings).UNKNOWN_TASK_TTL * 1000)
    digest = unknown_calls.digest(shape)
    end = End(member(job), "unfit", longest, SHAPES, expires, shape, digest)
    return (yield from settle_one(queue, job, end, part="unfit", name=digest))


def _give_back(attempt: Attempt, unfit: Exception) -> FailedAttempt | None:
    """Return a job that this worker can't run, without counting an attempt. One round trip; a repeat is safe.

    If it was returned for too long, or was cancelled while this worker had it, the result is the failure to record.
    """
    source, job = attempt.source, attempt.job
    call = unfit if isinstance(unfit, NewerMessage) else attempt.call
    answer = source.run_flow(defer(source, job, unknown_calls.shape(call), attempt.call.expires))
    if answer == RETURNED:
        return None
    error = Cancelled("The job was cancelled while it waited.") if answer == CANCELLED else unfit
    return FailedAttempt(source, job, error, recorder=attempt.recorder, final=True)


class UnknownCalls(Middleware):
    """Ends attempts for which this worker has no task, or one that takes other arguments."""

    is_used = attrgetter("unknown")

    def __call__(self, attempt: Attempt) -> Any:
        """See Middleware."""
        error: Any = attempt.unknown
        return Postponed(f"it can't run here: {text_of(error)!a}", partial(_give_back, attempt, error))
