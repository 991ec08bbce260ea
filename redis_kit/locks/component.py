"""Locks and semaphores as a component of the kit."""

from collections.abc import Iterable

from django.core.checks import CheckMessage, Error

from redis_kit.core import conf
from redis_kit.core.component import Component
from redis_kit.locks.settings import LockSettings


class Locks(Component):
    """Locks and semaphores."""

    settings = LockSettings
    commands = (
        "append blpop del exists expire get getrange hdel hlen hmget hset llen lpop lpush pexpire pexpireat "
        "pttl rpush set setrange zadd zcard zcount zincrby zrange zrangebyscore zrank zrem zremrangebyrank "
        "zremrangebyscore zrevrange zscore"
    )
    panels = ("redis_kit.locks.dashboard.panel.LocksPanel",)
    metrics = ("redis_kit.locks.metrics.LockMetrics",)
    permissions = (
        ("release_locks", "Can release locks that others hold"),
        ("change_limits", "Can change the limits of semaphores"),
    )

    def forget(self) -> None:
        """Forget which leases this process acquired: the next test has other keys."""
        from redis_kit.locks.leases.lease import forget

        # Not on a change of REDIS_KIT: a test may release under override_settings() what it acquired before.
        forget()

    def checks(self) -> Iterable[CheckMessage]:
        """Return an error if ``HOLDER`` does not name a function."""
        path = conf.valid_options(LockSettings).HOLDER
        if path and not conf.is_function(path):
            yield Error(f"REDIS_KIT['LOCKS']['HOLDER'] is {path!r}, which is not a function.", id="redis_kit.E013")
