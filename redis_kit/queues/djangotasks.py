"""Django's task framework: its own from 6.0 on, before that the backport ``django-tasks``, or neither.

Without either, ``FOUND`` is False and there are only ``Task`` and ``InvalidTask``, in a form of the kit's own.
"""

from typing import TYPE_CHECKING, Any
from weakref import ReferenceType

if TYPE_CHECKING:
    from django.tasks import TaskContext, TaskResult, TaskResultStatus, task_backends
    from django.tasks.backends.base import BaseTaskBackend
    from django.tasks.base import Task, TaskError
    from django.tasks.exceptions import InvalidTask, InvalidTaskBackend, TaskResultDoesNotExist, TaskResultMismatch
    from django.tasks.signals import task_enqueued, task_finished, task_started
    from django.utils.json import normalize_json

    FOUND = True
else:
    FOUND = True
    try:
        from django.tasks import TaskContext, TaskResult, TaskResultStatus, task_backends
        from django.tasks.backends.base import BaseTaskBackend
        from django.tasks.base import Task, TaskError
        from django.tasks.exceptions import InvalidTask, InvalidTaskBackend, TaskResultDoesNotExist, TaskResultMismatch
        from django.tasks.signals import task_enqueued, task_finished, task_started
        from django.utils.json import normalize_json
    except ImportError:
        try:
            from django_tasks import TaskContext, TaskResult, TaskResultStatus, task_backends
            from django_tasks.backends.base import BaseTaskBackend
            from django_tasks.base import Task, TaskError
            from django_tasks.exceptions import InvalidTaskBackendError as InvalidTaskBackend
            from django_tasks.exceptions import InvalidTaskError as InvalidTask
            from django_tasks.exceptions import TaskResultDoesNotExist, TaskResultMismatch
            from django_tasks.signals import task_enqueued, task_finished, task_started
            from django_tasks.utils import normalize_json
        except ImportError:
            from redis_kit.queues.plaintask import InvalidTask, Task

            FOUND = False

__all__ = [
    "FOUND",
    "BaseTaskBackend",
    "InvalidTask",
    "InvalidTaskBackend",
    "Task",
    "TaskContext",
    "TaskError",
    "TaskResult",
    "TaskResultDoesNotExist",
    "TaskResultMismatch",
    "TaskResultStatus",
    "heard",
    "normalize_json",
    "task_backends",
    "task_enqueued",
    "task_finished",
    "task_started",
]


def heard(signal: Any, level: int) -> bool:
    """Say whether anybody hears a signal: the framework's own receiver only logs, which mostly nobody reads."""
    if len(signal.receivers) != 1:
        return bool(signal.receivers)
    one = signal.receivers[0][1]
    receiver: Any = one() if isinstance(one, ReferenceType) else one
    only_logs = getattr(receiver, "__name__", "").startswith("log_task_")
    return not only_logs or bool(receiver.__globals__["logger"].isEnabledFor(level))
