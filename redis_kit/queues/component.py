"""The component of the job queues: its options, panels and checks."""

import sys
from collections.abc import Iterator
from contextlib import suppress

from django.conf import settings
from django.core.checks import CheckMessage, Error

from redis_kit.core.component import Component
from redis_kit.queues.settings import QueueSettings


class Queues(Component):
    """Job queues and their workers."""

    settings = QueueSettings
    panels = ("redis_kit.queues.panels.panels.QueuesPanel", "redis_kit.queues.panels.panels.WorkersPanel")
    permissions = (("manage_queues", "Can manage queues and their jobs"),)

    def forget(self) -> None:
        """Forget which queues are registered."""
        from redis_kit.queues.store import enqueue

        enqueue.forget_registered()

    def checks(self) -> Iterator[CheckMessage]:
        """Yield the modules of ``IMPORTS`` that do not exist, and the problems of ``TASKS``.

        The latter only if the check of the framework does not report them.
        """
        from redis_kit.queues.tasks import discovery

        for problem in discovery.problems():
            yield Error(problem.message, hint=problem.hint or None, id=f"redis_kit.{problem.id}")
        # Django registers its check when django.tasks is imported, the package if it is among INSTALLED_APPS.
        registered = {"django.tasks.checks", "django_tasks.checks"} & set(sys.modules)
        if registered or not settings.is_overridden("TASKS"):  # type: ignore[misc]
            return
        from redis_kit.queues import framework

        if not framework.FOUND:
            return
        from redis_kit.queues.backend import RedisTaskBackend

        with suppress(framework.InvalidTaskBackend):
            for backend in framework.task_backends.all():
                if isinstance(backend, RedisTaskBackend):
                    yield from backend.check()
