"""The tasks that this process knows, by name. A message can name one of them, and nothing else: it never imports."""

from typing import TYPE_CHECKING, Any

from django.utils.module_loading import autodiscover_modules

from redis_kit.core.errors import RedisKitError

if TYPE_CHECKING:
    from redis_kit.queues.tasks import Task

_tasks: dict[str, "Task[..., Any]"] = {}


class UnknownTask(RedisKitError, LookupError):
    """No task of this name was defined in any module that was imported."""


def register(task: "Task[..., Any]") -> None:
    """Remember a task under its name; one that had it before is replaced, as when a module is loaded again."""
    _tasks[task.name] = task


def find(name: str) -> "Task[..., Any]":
    """Return a task. Raises UnknownTask."""
    try:
        return _tasks[name]
    except KeyError:
        raise UnknownTask(f"unknown task {name[:200]!a}: no module that this worker imported defines it") from None


def queue_names() -> list[str]:
    """Return the queues that the known tasks name, in the order of the alphabet."""
    return sorted({task.queue_name for task in _tasks.values()})


def discover() -> None:
    """Import the ``tasks`` modules of all installed apps."""
    autodiscover_modules("tasks")
