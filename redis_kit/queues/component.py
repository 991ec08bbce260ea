"""The component of the job queues: its options, panels and checks."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register
from django.db.models import signals

from redis_kit.core import conf
from redis_kit.core.component import Component
from redis_kit.queues.settings import CELERY, QUEUE_OPTIONS, QueueSettings


class Queues(Component):
    """Job queues and their workers."""

    settings = QueueSettings
    commands = (
        "blpop del exists get hdel hexists hget hgetall hincrby hkeys hlen hmget hrandfield hset hvals incrby llen "
        "lrange ltrim persist pexpire pttl rpush sadd scard set sismember smembers srem xadd xlen xrevrange zadd "
        "zcard zcount zlexcount zmscore zpopmin zrandmember zrange zrangebylex zrangebyscore zrank zrem "
        "zremrangebyrank zremrangebyscore zrevrange zrevrank zscore"
    )
    panels = (
        "redis_kit.queues.dashboard.panel.QueuesPanel",
        "redis_kit.queues.dashboard.job_list_page.JobsPanel",
        "redis_kit.queues.dashboard.tasks_page.TasksPanel",
        "redis_kit.queues.dashboard.workers_page.WorkersPanel",
        "redis_kit.queues.dashboard.schedules_page.SchedulesPanel",
        "redis_kit.queues.dashboard.workflows_page.WorkflowsPanel",
        "redis_kit.queues.dashboard.handovers_page.HandOversPanel",
    )
    metrics = ("redis_kit.queues.metrics.QueueMetrics",)
    permissions = (("manage_queues", "Can manage queues and their jobs"),)

    def ready(self) -> None:
        """Have rows of schedules stored when they change, and checked with the database.

        Give Celery, if it is loaded, the task that runs jobs.
        """
        from redis_kit.queues.database.models import Schedule

        register(_check_schedules, Tags.database)
        signals.post_save.connect(_saved, sender=Schedule)
        signals.post_delete.connect(_deleted, sender=Schedule)
        if "celery" in sys.modules:
            import_module("redis_kit.queues.celery.tasks")

    def checks(self) -> Iterator[CheckMessage]:
        """Yield what does not exist: modules in options, packages. And the problems of our backends in ``TASKS``."""
        from redis_kit.queues.tasks import discovery, middleware

        for problem in (*discovery.problems(), *discovery.problems_of_paths(), *middleware.problems()):
            yield Error(problem.message, hint=problem.hint or None, id=f"redis_kit.{problem.id}")
        for queue, options in conf.valid_options(QueueSettings).QUEUE_OPTIONS.items():
            name = options.get("SINK", "") if isinstance(options, Mapping) else ""
            if name == CELERY and not find_spec(CELERY):
                missing = f"{QUEUE_OPTIONS}[{queue!r}]['SINK'] is 'celery', and the package is not installed."
                yield Error(missing, hint="pip install 'django-redis-kit[celery]'", id="redis_kit.E002")
        if not find_spec("cronsim"):
            if path := getattr(settings, "ROOT_URLCONF", None):
                with suppress(Exception):  # Django's own check of it says what is wrong
                    import_module(path)  # and, with the views, many modules of tasks
            yield from (Error(text, id="redis_kit.E002") for text in discovery.lacking())
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


def _check_schedules(**kwargs: Any) -> list[CheckMessage]:
    from redis_kit.queues import framework

    if not framework.FOUND:
        return []  # no worker runs schedules then
    from redis_kit.queues.tasks.schedules import rows

    return rows.check_schedules(**kwargs)


def _saved(*, instance: Any, raw: bool = False, **kwargs: Any) -> None:
    if not raw:  # a fixture may be loaded before its table's other rows; workers store it within a minute
        from redis_kit.queues.tasks.schedules import rows

        rows.push(instance)


def _deleted(*, instance: Any, **kwargs: Any) -> None:
    from redis_kit.queues.tasks.schedules import rows

    rows.push(instance, deleted=True)
