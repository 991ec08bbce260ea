"""The tasks that this process knows, by name. A message can name one of them, and nothing else: it never imports."""

import sys
from typing import Any

from django.utils.module_loading import autodiscover_modules

from redis_kit.core.errors import RedisKitError
from redis_kit.queues import framework

_tasks: dict[str, Any] = {}


class UnknownTask(RedisKitError, LookupError):
    """No task of this name was defined in any module that was imported."""


def register(task: Any) -> None:
    """Remember a task under its name; one that had it before is replaced, as when a module is loaded again."""
    _tasks[task.module_path] = task


def notice(task: Any) -> None:
    """Remember a task unless its function is known: the same one with another queue or priority is nothing new."""
    known = _tasks.get(task.module_path)
    if known is None or known.func is not task.func:
        register(task)


def find(name: str) -> Any:
    """Return a task, of the kit or of django.tasks. Raises UnknownTask."""
    found = _tasks.get(name) or _defined(name)
    if found is None:
        raise UnknownTask(f"unknown task {name[:200]!a}: no module that this worker imported defines it")
    return found


def _defined(name: str) -> Any:
    """Return a task that was made for another backend, if a module that is loaded holds it under this name."""
    module, _, attribute = name.rpartition(".")
    found = getattr(sys.modules.get(module), "__dict__", {}).get(attribute)
    return found if framework.FOUND and isinstance(found, framework.Task) and found.module_path == name else None


def queue_names() -> list[str]:
    """Return the queues of the registered tasks, sorted."""
    return sorted({task.queue_name for task in _tasks.values()})


def discover() -> None:
    """Import the ``tasks`` modules of all installed apps."""
    autodiscover_modules("tasks")
