"""Around the call of a task: its value is stored."""

from operator import attrgetter
from typing import Any

from redis_kit.queues.worker.run.attempt import Attempt
from redis_kit.queues.worker.run.middleware import Middleware


class Results(Middleware):
    """Stores what the task returns."""

    is_used = attrgetter("recorder")

    def __call__(self, attempt: Attempt) -> Any:
        """See Middleware."""
        recorder: Any = attempt.recorder
        if attempt.task.takes_context:
            attempt.context = recorder.context()
        returned = self.call_next(attempt)
        attempt.value = recorder.value(returned)
        if recorder.is_heard:
            attempt.announcements += (recorder.succeeded,)
        return returned
