"""Sends the ticks of schedules whose tasks are Celery's."""

from functools import cache
from typing import Any

from redis_kit.core import conf
from redis_kit.queues.celery.app import project_app
from redis_kit.queues.celery.broker import TaskCall
from redis_kit.queues.celery.publisher import Publisher


def send(name: str, args: list[Any], kwargs: dict[str, Any], *, id: str, queue: str) -> None:
    """Send a call, and return when the broker has it. ``queue`` is "" for the one that Celery chooses.

    Raises ConfigurationError without a Celery app, and NotTaken.
    """
    _publisher().publish(TaskCall(name, args, kwargs, id, {"queue": queue} if queue else {}))


@cache
def _publisher() -> Publisher:
    return Publisher(project_app())


def _forget() -> None:
    """Close the connections to the broker, which may be another one from now on."""
    if _publisher.cache_info().currsize:
        _publisher().close()
    _publisher.cache_clear()


conf.on_change(_forget)
