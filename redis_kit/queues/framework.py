"""Django's task framework: its own from 6.0 on, before that the backport ``django-tasks``, or neither.

Without either, ``FOUND`` is False and there are only ``Task`` and ``InvalidTask``, in a form of the kit's own. One that
is installed and lacks a name that is needed here raises ConfigurationError: it is not taken for absent.
"""

from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from weakref import ReferenceType

from redis_kit.core.errors import ConfigurationError


def _unusable(package: str, error: Exception) -> ConfigurationError:
    return ConfigurationError(
        f"redis_kit.queues can't use {package} {version(package)}: {error}. Install Django 6.0 or newer, or "
        "django-tasks 0.12 or newer; if this is one of them, it has changed since this release of django-redis-kit."
    )


FOUND = True
if TYPE_CHECKING:
    from django.tasks import TaskContext, TaskResult, TaskResultStatus, task_backends
    from django.tasks.backends.base import BaseTaskBackend
    from django.tasks.base import Task, TaskError
    from django.tasks.exceptions import InvalidTask, InvalidTaskBackend, TaskResultDoesNotExist, TaskResultMismatch
    from django.tasks.signals import task_enqueued, task_finished, task_started
    from django.utils.json import normalize_json
elif find_spec("django.tasks"):
    try:
        from django.tasks import TaskContext, TaskResult, TaskResultStatus, task_backends
        from django.tasks.backends.base import BaseTaskBackend
        from django.tasks.base import Task, TaskError
        from django.tasks.exceptions import InvalidTask, InvalidTaskBackend, TaskResultDoesNotExist, TaskResultMismatch
        from django.tasks.signals import task_enqueued, task_finished, task_started
        from django.utils.json import normalize_json
    except ImportError as error:
        raise _unusable("Django", error) from error
elif find_spec("django_tasks"):
    try:
        from django_tasks import TaskContext, TaskResult, TaskResultStatus, exceptions, task_backends
        from django_tasks.backends.base import BaseTaskBackend
        from django_tasks.base import Task, TaskError
        from django_tasks.exceptions import TaskResultDoesNotExist, TaskResultMismatch
        from django_tasks.signals import task_enqueued, task_finished, task_started
        from django_tasks.utils import normalize_json

        if hasattr(exceptions, "InvalidTask"):  # the releases after 0.12 have the names of Django
            from django_tasks.exceptions import InvalidTask, InvalidTaskBackend
        else:
            from django_tasks.exceptions import InvalidTaskBackendError as InvalidTaskBackend
            from django_tasks.exceptions import InvalidTaskError as InvalidTask
    except ImportError as error:
        raise _unusable("django-tasks", error) from error
else:
    from redis_kit.queues.tasks.plaintask import InvalidTask, Task

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
