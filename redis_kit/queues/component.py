"""The component of the job queues: its options and panels."""

import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from django.conf import settings
from django.core.checks import CheckMessage

from redis_kit.core.component import Component
from redis_kit.core.conf import Problem, Section
from redis_kit.core.errors import InvalidName
from redis_kit.core.keys import encode


@dataclass(frozen=True)
class QueueSettings(Section):
    """The options of ``REDIS_KIT["QUEUES"]``."""

    name = "QUEUES"
    ranges = {
        "BEAT": (0.05, 60),
        "DEAD_AFTER": (0.2, 3600),
        "MAX_ATTEMPTS": (1, 1000),
        "RETRY_BACKOFF": (0, 86_400),
        "RETRY_BACKOFF_MAX": (0, 31_536_000),
        "UNKNOWN_TASK_TTL": (0, 31_536_000),
        "MAX_CRASHES": (1, 100),
        "DEAD_LIMIT": (1, 1_000_000),
        "RESULT_TTL": (1, 31_536_000),
        "FAILED_RESULT_TTL": (1, 31_536_000),
    }

    #: Queues that the dashboard shows from the start, and that a worker without ``--queue-name`` works on first. Others
    #: appear on the dashboard when they are used; such a worker works on those that tasks name.
    NAMES: list[str] | tuple[str, ...] = ("default",)
    #: Seconds between two beats of a worker.
    BEAT: float = 2.0
    #: Seconds of silence after which a worker counts as dead, and its jobs are given to others.
    DEAD_AFTER: float = 10.0
    #: Failed attempts after which a job is dead, where its task says nothing else. With the default waits between them,
    #: a task that needs another service survives that service's outage of more than an hour.
    MAX_ATTEMPTS: int = 11
    #: Seconds to wait after the first failed attempt, twice as long after each further one, where the task has no
    #: ``backoff``. The wait is random, between half of that and all of it.
    RETRY_BACKOFF: float = 10.0
    #: Seconds beyond which that wait does not grow.
    RETRY_BACKOFF_MAX: float = 3600.0
    #: Seconds for which a job waits for a worker that knows its task, and whose function takes its arguments, as in a
    #: deploy. It is dead when a worker meets it later than that. 0 means at once.
    UNKNOWN_TASK_TTL: float = 86_400.0
    #: Workers that may die with a job in hand before it counts as the reason.
    MAX_CRASHES: int = 3
    #: Dead jobs kept per queue; beyond that the oldest are dropped, and any after 30 days.
    DEAD_LIMIT: int = 10_000
    #: Seconds for which the result of a task that succeeded can be read.
    RESULT_TTL: float = 86_400.0
    #: Seconds for which the result of a task that failed can be read.
    FAILED_RESULT_TTL: float = 1_209_600.0
    #: How arguments are stored. Only JSON: anything that can hold code would let whoever writes to Redis run it.
    SERIALIZER: str = "json"
    #: What a call does while Redis is away.
    ON_FAILURE: Literal["raise"] = "raise"

    def problems(self) -> Iterator[Problem]:
        """Yield the rules for the beat, the retries, the serializer and the names."""
        if self.BEAT >= self.DEAD_AFTER / 2:
            yield Problem(
                "E007",
                f"REDIS_KIT['QUEUES']['BEAT'] is {self.BEAT:g} s; it must be less than half of DEAD_AFTER "
                f"({self.DEAD_AFTER:g} s), or one late beat costs a living worker its jobs.",
                "Make DEAD_AFTER five times BEAT.",
            )
        if self.RETRY_BACKOFF > self.RETRY_BACKOFF_MAX:
            yield Problem(
                "E006",
                f"REDIS_KIT['QUEUES']['RETRY_BACKOFF'] is {self.RETRY_BACKOFF:g} s; it must not be more than "
                f"RETRY_BACKOFF_MAX ({self.RETRY_BACKOFF_MAX:g} s).",
                "Make RETRY_BACKOFF smaller, or RETRY_BACKOFF_MAX larger.",
            )
        if self.SERIALIZER != "json":
            yield Problem("E010", f"REDIS_KIT['QUEUES']['SERIALIZER'] is {self.SERIALIZER!r}; only 'json' is allowed.")
        for queue in self.NAMES:
            try:
                encode(queue)
            except InvalidName as error:
                yield Problem("E006", f"REDIS_KIT['QUEUES']['NAMES'] holds a name that can't be used. {error}")


class Queues(Component):
    """Job queues and their workers."""

    settings = QueueSettings
    panels = ("redis_kit.queues.panels.panels.QueuesPanel", "redis_kit.queues.panels.panels.WorkersPanel")
    permissions = (("manage_queues", "Can manage queues and their jobs"),)

    def checks(self) -> Iterator[CheckMessage]:
        """Yield what is wrong with ``TASKS``, unless the framework's own check is there, which looks at it too."""
        # Django's is registered by the import of django.tasks, the package's where it is among INSTALLED_APPS.
        theirs = {"django.tasks.checks", "django_tasks.checks"} & set(sys.modules)
        if theirs or not settings.is_overridden("TASKS"):  # type: ignore[misc]
            return
        from redis_kit.queues import framework

        if not framework.FOUND:
            return
        from redis_kit.queues.backend import RedisTaskBackend

        with suppress(framework.InvalidTaskBackend):
            for backend in framework.task_backends.all():
                if isinstance(backend, RedisTaskBackend):
                    yield from backend.check()
