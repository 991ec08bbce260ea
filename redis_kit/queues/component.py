"""The component of the job queues: its options, panels and checks."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error
from django.db.models import signals

from redis_kit.core.component import Component
from redis_kit.queues.settings import QueueSettings


class Queues(Component):
    """Job queues and their workers."""

    settings = QueueSettings
    panels = (
        "redis_kit.queues.panels.panels.QueuesPanel",
        "redis_kit.queues.panels.panels.WorkersPanel",
        "redis_kit.queues.panels.schedules_page.SchedulesPanel",
    )
    permissions = (("manage_queues", "Can manage queues and their jobs"),)

    def ready(self) -> None:
        """Have rows of schedules stored in Redis when they are saved or deleted."""
        from redis_kit.queues.database.models import Schedule

        signals.post_save.connect(_saved, sender=Schedule)
        signals.post_delete.connect(_deleted, sender=Schedule)

    def checks(self) -> Iterator[CheckMessage]:
        """Yield the modules of ``IMPORTS`` that do not exist, and the problems of our backends in ``TASKS``."""
        from redis_kit.queues.tasks import discovery

        for problem in discovery.problems():
            yield Error(problem.message, hint=problem.hint or None, id=f"redis_kit.{problem.id}")
        if not settings.is_overridden("TASKS"):  # type: ignore[misc]
            return
        from redis_kit.queues import framework

        if not framework.FOUND:
            return
        from redis_kit.queues.backend import RedisTaskBackend

        if wrong := list(framework.tasks_problems()) or list(framework.missing_backends()):
            for problem in wrong:
                yield Error(problem.message, hint=problem.hint, id=f"redis_kit.{problem.id}")
            return
        with suppress(framework.InvalidTaskBackend):
            for backend in framework.task_backends.all():
                if isinstance(backend, RedisTaskBackend):
                    yield from backend.problems()


def _saved(*, instance: Any, raw: bool = False, **kwargs: Any) -> None:
    if not raw:  # a fixture may be loaded before its table's other rows; workers store it within a minute
        from redis_kit.queues.tasks.schedules import rows

        rows.push(instance)


def _deleted(*, instance: Any, **kwargs: Any) -> None:
    from redis_kit.queues.tasks.schedules import rows

    rows.push(instance, deleted=True)
