"""The component of the job queues: its options, panels and checks."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage
from django.utils.module_loading import import_string

from redis_kit.core.component import Component
from redis_kit.core.panels import Panel
from redis_kit.queues.engine.feature import features
from redis_kit.queues.settings import QueueSettings


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
        "redis_kit.queues.dashboard.queues_page.QueuesPanel",
        "redis_kit.queues.dashboard.job_list_page.JobsPanel",
        "redis_kit.queues.dashboard.workers_page.WorkersPanel",
    )
    metrics = ("redis_kit.queues.metrics.QueueMetrics",)
    permissions = (("manage_queues", "Can manage queues and their jobs"),)

    def ready(self) -> None:
        """Have all features connect their signals."""
        for feature in features():
            feature.ready()

    def load_panels(self) -> list[Panel]:
        """Return the panels of queues, and then those of features."""
        paths = [path for feature in features() for path in feature.panels]
        return [*super().load_panels(), *(import_string(path)() for path in paths)]

    def load_metrics(self) -> list[Any]:
        """Return the sources of metrics of queues, and then those of features."""
        paths = [path for feature in features() for path in feature.metrics]
        return [*super().load_metrics(), *(import_string(path)() for path in paths)]

    def checks(self) -> Iterator[CheckMessage]:
        """Yield what does not exist: modules in options, packages. And the problems of our backends in ``TASKS``."""
        from redis_kit.queues.tasks import discovery, middleware

        for problem in (*discovery.problems(), *middleware.problems()):
            yield problem.check_message
        for feature in features():
            yield from feature.checks()
        if not settings.is_overridden("TASKS"):  # type: ignore[misc]
            return
        from redis_kit.queues import framework

        if not framework.FOUND:
            return
        from redis_kit.queues.backend import RedisTaskBackend

        if wrong := list(framework.tasks_problems()) or list(framework.missing_backends()):
            yield from (problem.check_message for problem in wrong)
            return
        with suppress(framework.InvalidTaskBackend):
            for backend in framework.task_backends.all():
                if isinstance(backend, RedisTaskBackend):
                    yield from backend.problems()
