"""At most once: a job whose task has begun never runs again, whatever becomes of it."""

from collections.abc import Mapping
from typing import Any

from redis_kit.core.errors import InvalidValue
from redis_kit.core.text import shortened
from redis_kit.queues.engine.feature import Feature


class AtMostOnce(Feature):
    """The option ``at_most_once`` of tasks. Middleware has the server note which of their jobs have begun."""

    name = "at_most_once"
    task_options = {"at_most_once": False}
    begin = ("redis_kit.queues.features.at_most_once.middleware.FirstRuns",)

    def declare(self, task: Any) -> Mapping[str, Any]:
        """See Feature. A job that failed has no further attempt."""
        given = task.options.at_most_once
        if not isinstance(given, bool):
            raise InvalidValue(f"at_most_once must be True or False, not {shortened(given)}.")
        attempts = None if task.max_attempts == 1 else task.max_attempts
        for option, value in (("max_attempts", attempts), ("backoff", task.backoff)):
            if value is not None:
                wrong = f"{option} can't stand beside at_most_once=True"
                raise InvalidValue(f"{wrong}: a job that has begun is not tried again. Leave one of them out.")
        return {"max_attempts": 1}
