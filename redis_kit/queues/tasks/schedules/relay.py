"""The task that passes a tick on to Celery, or to another backend of ``django.tasks``, out of a worker's thread.

Workers' supervisors add jobs to Redis only: a broker or database that hangs must not keep them from their heartbeats.
"""

from types import SimpleNamespace
from typing import Any

from django.utils.module_loading import import_string

from redis_kit.core.errors import ConfigurationError
from redis_kit.queues.errors import GiveUp
from redis_kit.queues.tasks import registry
from redis_kit.queues.tasks.options import copy
from redis_kit.queues.tasks.task import Task

CELERY = "redis_kit.queues.celery.schedules.send"


def send(kind: str, name: str, queue: str, id: str, args: list[Any], kwargs: dict[str, Any]) -> None:
    """Pass a call on. ``id`` is the same in each attempt."""
    if kind == "celery":
        try:
            celery_send()(name, args, kwargs, id=id, queue=queue)
        except ConfigurationError as error:
            raise GiveUp(str(error)) from error
        return
    task = registry.find(name)
    (task.using(queue_name=queue) if queue else task).enqueue(*args, **kwargs)


def celery_send() -> Any:
    """Return the function that sends a call to Celery. Raises GiveUp without Celery."""
    try:
        return import_string(CELERY)
    except ImportError as error:
        raise GiveUp(f"A schedule of a Celery task needs Celery: {error}") from error


# Not made by @task, which would check it against the backends of the project: no project enqueues it.
send: Task[..., Any] = copy(  # type: ignore[no-redef]
    SimpleNamespace(func=send, queue_name="default", backend="default", priority=0), Task
)
NAME = f"{__name__}.send"
