"""Attempts of jobs that this worker can't run: the job goes back, for another worker that may have the code for it."""

from functools import partial
from operator import attrgetter
from typing import Any

from redis_kit.core.logs.error_text import text_of
from redis_kit.queues.errors import Cancelled, NewerMessage
from redis_kit.queues.features.unknown import store
from redis_kit.queues.reports import unknown_calls
from redis_kit.queues.worker.run.attempt import Attempt, Middleware
from redis_kit.queues.worker.run.endings import FailedAttempt, Postponed


def _give_back(attempt: Attempt, unfit: Exception) -> FailedAttempt | None:
    """Return a job that this worker can't run, without counting an attempt. One round trip; a repeat is safe.

    If it was returned for too long, or was cancelled while this worker had it, the result is the failure to record.
    """
    source, job = attempt.source, attempt.job
    call = unfit if isinstance(unfit, NewerMessage) else attempt.call
    answer = source.run_flow(store.defer(source, job, unknown_calls.shape(call), attempt.call.expires))
    if answer == store.RETURNED:
        return None
    error = Cancelled("The job was cancelled while it waited.") if answer == store.CANCELLED else unfit
    return FailedAttempt(source, job, error, recorder=attempt.recorder, final=True)


class UnknownCalls(Middleware):
    """Ends attempts for which this worker has no task, or one that takes other arguments."""

    is_used = attrgetter("unknown")

    def __call__(self, attempt: Attempt) -> Any:
        """See Middleware."""
        error: Any = attempt.unknown
        return Postponed(f"it can't run here: {text_of(error)!a}", partial(_give_back, attempt, error))
