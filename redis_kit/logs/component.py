"""Logs as a component."""

import sys

from django.utils.translation import gettext_lazy as _

from redis_kit.core.component import Component
from redis_kit.logs.settings import LogSettings


class Logs(Component):
    """Recent log records, and the most common messages."""

    settings = LogSettings
    commands = (
        "get hincrby hlen hmget hset hsetnx incrby lpush lrange ltrim pexpire set zadd zcard zincrby zrange "
        "zremrangebyscore zscore zunion"
    )
    one_slot = True
    panels = ("redis_kit.logs.dashboard.panel.LogsPanel",)
    group = _("Servers")
    metrics = ("redis_kit.logs.metrics.LogMetrics",)
    permissions = (("view_logs", "Can view log records"),)

    def forget(self) -> None:
        """Drop the records that wait to be stored."""
        if module := sys.modules.get("redis_kit.logs.buffer"):  # not imported without the handler
            module.buffer.discard()
