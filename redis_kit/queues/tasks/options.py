"""The options of a task, checked where it is defined and where ``using()`` changes them."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

from redis_kit.core.errors import InvalidValue
from redis_kit.core.keys import encode
from redis_kit.core.text import shortened
from redis_kit.queues import validation
from redis_kit.queues.tasks import expiry, retry, unique

if TYPE_CHECKING:
    from redis_kit.queues.tasks.task import Task

TIMEOUT = (0.001, 604_800.0)  # seconds


def check(task: "Task[..., Any]") -> None:
    """Raise InvalidName or InvalidValue where an option of a task is wrong."""
    encode(task.queue_name)
    validation.whole("priority", task.priority, validation.PRIORITY)
    if task.max_attempts is not None:
        validation.whole("max_attempts", task.max_attempts, validation.LIMIT)
    if task.timeout is not None:
        validation.seconds("timeout", task.timeout, TIMEOUT)
    if task._delay is not None:
        validation.milliseconds(task._delay)
    if isinstance(task.run_after, datetime):
        validation.moment(task.run_after)
    elif task.run_after is not None:
        raise InvalidValue(f"run_after must be a datetime or a timedelta, not {task.run_after!r}.")
    for name in ("store_result", "enqueue_on_commit"):
        if not isinstance(value := getattr(task, name), bool):
            raise InvalidValue(f"{name} must be True or False, not {shortened(value)}.")
    expiry.milliseconds(task)
    retry.check(task.backoff)
    unique.check(task)
