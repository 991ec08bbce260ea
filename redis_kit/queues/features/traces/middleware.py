"""The task of an attempt runs in a span of its own."""

from operator import attrgetter
from typing import Any

from redis_kit.core.tracing import spans
from redis_kit.queues.errors import Retry, Snooze
from redis_kit.queues.worker.run.attempt import Attempt, Middleware, WorkerContext


class Tracing(Middleware):
    """Runs the task in a span of its own."""

    def __call__(self, attempt: Attempt) -> Any:
        """See Middleware."""
        call, job, queue = attempt.call, attempt.job, attempt.queue_name
        with spans.tracer().running(call.task, queue, job.id, job.attempt, call.trace, postponed=(Retry, Snooze)):
            attempt.trace = spans.ids()
            return self.call_next(attempt)

    @classmethod
    def usage(cls, worker: WorkerContext) -> "attrgetter[Any] | None":
        """See Middleware. A process that traces nothing does not need it."""
        return cls.is_used if spans.tracer() else None
