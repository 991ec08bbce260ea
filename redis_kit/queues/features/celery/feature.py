"""Celery: its workers run jobs of the kit, and its tasks may wait in queues of the kit."""

import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec

from django.core.checks import CheckMessage, Error

from redis_kit.core import conf
from redis_kit.queues.engine.feature import Feature
from redis_kit.queues.settings import CELERY, QUEUE_OPTIONS, QueueSettings


class Celery(Feature):
    """A sink, a task backend, and bases of Celery's tasks."""

    name = "celery"
    provides = {"celery_sender": "redis_kit.queues.features.celery.broker.send_tick"}
    sinks = {CELERY: "redis_kit.queues.features.celery.sink.CelerySink"}

    def ready(self) -> None:
        """Give Celery, if it is loaded, the task that runs jobs."""
        if CELERY in sys.modules:
            import_module("redis_kit.queues.features.celery.tasks")

    def checks(self) -> Iterator[CheckMessage]:
        """Yield the queues whose jobs go to Celery, if its package is missing."""
        for queue, options in conf.valid_options(QueueSettings).QUEUE_OPTIONS.items():
            name = options.get("SINK", "") if isinstance(options, Mapping) else ""
            if name == CELERY and not find_spec(CELERY):
                missing = f"{QUEUE_OPTIONS}[{queue!r}]['SINK'] is 'celery', and the package is not installed."
                yield Error(missing, hint="pip install 'django-redis-kit[celery]'", id="redis_kit.E002")
