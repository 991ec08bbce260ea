"""Django's task framework: built in from Django 6.0, the package ``django-tasks`` before that.

Without one of them ``FOUND`` is False, and using any other name raises ConfigurationError. ``Queue`` needs no
framework. A framework that lacks a name used here raises ConfigurationError at import: it is not treated as absent.
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
    FOUND = False

    class InvalidTask(Exception):
        """The base of an exception that exists without a framework, too."""

    def __getattr__(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise ConfigurationError(
            "Tasks need Django 6.0 or newer, or the package django-tasks: pip install 'django-redis-kit[tasks]'. "
            "redis_kit.queues.Queue works without them."
        )


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
    """Return whether sending a signal has any effect. The framework's own receiver only logs, mostly to nowhere."""
    if len(signal.receivers) != 1:
        return bool(signal.receivers)
    reference = signal.receivers[0][1]
    receiver: Any = reference() if isinstance(reference, ReferenceType) else reference
    only_logs = getattr(receiver, "__name__", "").startswith("log_task_")
    return not only_logs or bool(receiver.__globals__["logger"].isEnabledFor(level))
