"""Celery beside the kit: a fleet that runs due jobs, delays that no Celery worker has to hold, one run at a time."""

from typing import TYPE_CHECKING

from redis_kit.core.lazy import lazily

if TYPE_CHECKING:
    from redis_kit.queues.features.celery.backend import CeleryTaskBackend
    from redis_kit.queues.features.celery.delay import DelayedTask
    from redis_kit.queues.features.celery.singleton import SingletonTask

__all__ = ["CeleryTaskBackend", "DelayedTask", "SingletonTask"]

__getattr__, __dir__ = lazily(
    __name__,
    {"backend": ("CeleryTaskBackend",), "delay": ("DelayedTask",), "singleton": ("SingletonTask",)},
    home="redis_kit.queues.features.celery",
)
