"""Attempts of jobs that this worker can't run: the job goes back, for another worker that may have the code for it."""

from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from redis_kit.core.logs.error_text import text_of
from redis_kit.queues.errors import Cancelled, NewerMessage
from redis_kit.queues.features.unknown import store
from redis_kit.queues.reports import unknown_calls
from redis_kit.queues.worker.run.attempt import Attempt, Middleware
from redis_kit.queues.worker.run.endings import FailedAttempt, Postponed, failed


@dataclass(frozen=True)
class UnfitJob(Postponed):
    """A job that this worker can't run, and the reason. Another worker may have the code for it."""

    error: Exception

    def give_back(self) -> FailedAttempt | None:
        """Return it to its queue without counting an attempt. One round trip; a repeat is safe.

        If it was returned for too long, or was cancelled while this worker had it, the result is the failure to record.
        """
        source, job, recorder = self.attempt.source, self.attempt.job, self.attempt.recorder
        call = self.error if isinstance(self.error, NewerMessage) else self.attempt.call
        expires = self.attempt.call.expires
        answer = source.run_flow(store.defer(source, job, unknown_calls.shape(call), expires))
        if answer == store.RETURNED:
            return None
        cancelled = Cancelled("The job was cancelled while it waited.")
        error = cancelled if answer == store.CANCELLED else self.error
        return failed(source, job, error, recorder=recorder, final=True)


class UnknownCalls(Middleware):
    """Ends attempts for which this worker has no task, or one that takes other arguments."""

    is_used = attrgetter("unknown")

    def __call__(self, attempt: Attempt) -> Any:
        """See Middleware."""
        error: Any = attempt.unknown
        return UnfitJob(attempt, f"it can't run here: {text_of(error)!a}", error)
