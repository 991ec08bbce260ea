"""Django's task framework: built in from Django 6.0, the package ``django-tasks`` before that.

Without one of them ``FOUND`` is False, and using any other name raises ConfigurationError. ``Queue`` needs no
framework. A framework that lacks a name used here raises ConfigurationError at import: it is not treated as absent.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from weakref import ReferenceType

from django.conf import settings
from django.utils.module_loading import import_string

from redis_kit.core.conf import Problem, described_value
from redis_kit.core.errors import ConfigurationError
from redis_kit.core.text import did_you_mean


def _unusable(package: str, error: Exception) -> ConfigurationError:
    return ConfigurationError(
        f"redis_kit.queues can't use {package} {version(package)}: {error}. Install Django 6.0 or newer, or "
        "django-tasks 0.12 or newer; if this is one of them, it has changed since this release of django-redis-kit."
    )


FOUND = True
if TYPE_CHECKING or find_spec("django.tasks"):
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

    class InvalidTaskBackend(Exception):
        """The base of another one."""

    def __getattr__(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise ConfigurationError(
            "Tasks need Django 6.0 or newer, or the package django-tasks: pip install 'django-redis-kit[tasks]'. "
            "redis_kit.queues.Queue works without them."
        )


__all__ = [
    "BACKEND",
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
    "missing_backend",
    "missing_backends",
    "normalize_json",
    "task_backends",
    "task_enqueued",
    "task_finished",
    "task_started",
    "tasks_problems",
    "unlogged",
]

BACKEND = "redis_kit.queues.backend.RedisTaskBackend"
CELERY_BACKEND = "redis_kit.queues.celery.CeleryTaskBackend"
BUNDLED = BaseTaskBackend.__module__.rpartition(".")[0] if FOUND else ""  # the package of the framework's backends
_RECEIVER = "log_task_"  # how the names of the framework's own receivers begin
_unlogged: ContextVar[frozenset[str]] = ContextVar("redis_kit_unlogged", default=frozenset())  # names of receivers


def tasks_problems() -> Iterator[Problem]:
    """Yield the problems of the shape of ``TASKS``. The framework would raise a TypeError or KeyError for them."""
    example = f"For instance {{'default': {{'BACKEND': '{BACKEND}'}}}}."
    if not isinstance(given := getattr(settings, "TASKS", {}), Mapping):
        yield Problem("E002", f"TASKS is {described_value(given)}; it must be a dict.", example)
        return
    for alias, entry in given.items():
        if not isinstance(entry, Mapping):
            yield Problem("E002", f"TASKS[{alias!r}] is {described_value(entry)}; it must be a dict.", example)
        elif not isinstance(entry.get("BACKEND"), str):
            said = f"is {described_value(entry['BACKEND'])}" if "BACKEND" in entry else "is missing"
            wrong = f"TASKS[{alias!r}]['BACKEND'] {said}; it must be the dotted path of a backend."
            yield Problem("E006", wrong, example)


def missing_backends() -> Iterator[Problem]:
    """Yield the backends of ``TASKS`` that can't be imported, and ``default`` if it is missing. Imports them all."""
    for alias in dict.fromkeys(["default", *settings.TASKS]):
        yield from missing_backend(alias)


def missing_backend(alias: str) -> Iterator[Problem]:
    """Yield the problem of a backend that ``TASKS`` lacks or that can't be imported."""
    if alias not in settings.TASKS:
        listed = ", ".join(map(repr, settings.TASKS)) or "no backend"
        hint = did_you_mean(alias, settings.TASKS, f"It has {listed}.")
        if alias == "default":
            hint = f"Tasks without backend=... use 'default'. TASKS has {listed}."
        yield Problem("E002", f"TASKS has no backend {alias!r}.", hint)
        return
    path = settings.TASKS[alias]["BACKEND"]
    try:
        import_string(path)
    except ImportError as error:
        wrong = f"TASKS[{alias!r}]['BACKEND'] is {path!r}, which can't be imported: {str(error).rstrip('.')}."
        yield Problem("E002", wrong, _backend_hint(path) or "Write the dotted path of a class.")


def _backend_hint(path: str) -> str:
    """Return the backend that was probably meant; "" if none of ours and of the framework is like it."""
    if "redis" in path.lower():
        bundled = [BACKEND, CELERY_BACKEND]
        return did_you_mean(path, bundled, f"Did you mean {BACKEND!r}?") if path.startswith(("django", "redis")) else ""
    bundled = [f"{BUNDLED}.{name}" for name in ("immediate.ImmediateBackend", "dummy.DummyBackend")]
    return did_you_mean(path, bundled) if path.startswith("django") else ""


def heard(signal: Any, level: int) -> bool:
    """Return whether sending a signal has any effect. The framework's own receiver only logs, mostly to nowhere."""
    if len(signal.receivers) != 1:
        return bool(signal.receivers)
    receiver = _receiver(signal.receivers[0])
    return not _only_logs(receiver) or bool(receiver.__globals__["logger"].isEnabledFor(level))


@contextmanager
def unlogged(signal: Any) -> Iterator[None]:
    """Keep the framework's own receiver from logging while a signal is sent. All other receivers are called as ever."""
    silent = [receiver for entry in signal.receivers if _only_logs(receiver := _receiver(entry))]
    for receiver in silent:
        # For good, and once: a filter that is removed while another thread logs would make it miss the next one.
        receiver.__globals__["logger"].addFilter(_is_logged)
    before = _unlogged.set(frozenset(receiver.__name__ for receiver in silent))
    try:
        yield
    finally:
        _unlogged.reset(before)


def _is_logged(record: logging.LogRecord) -> bool:
    return record.funcName not in _unlogged.get()


def _receiver(entry: Any) -> Any:
    return entry[1]() if isinstance(entry[1], ReferenceType) else entry[1]


def _only_logs(receiver: Any) -> bool:
    return getattr(receiver, "__name__", "").startswith(_RECEIVER)
