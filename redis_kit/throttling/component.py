"""The throttling component: its settings, its checks and its panel."""

from collections.abc import Iterable
from typing import Any

from django.core.checks import CheckMessage

from redis_kit.core.component import Component
from redis_kit.throttling.settings import ThrottlingSettings


class Throttling(Component):
    """Limits on how often something may happen."""

    settings = ThrottlingSettings
    commands = (
        "append del exists expire get getrange hdel hget hgetall hincrby hlen hmget hset incr pexpire "
        "pexpiretime set strlen zadd zcard zcount zincrby zpopmin zrangebyscore zrem zremrangebyrank "
        "zremrangebyscore zrevrange zscan zscore"
    )
    panels = ("redis_kit.throttling.dashboard.panel.ThrottlesPanel",)
    metrics = ("redis_kit.throttling.metrics.ThrottleMetrics",)
    permissions = (
        ("reset_throttles", "Can reset and change throttles"),
        ("view_identities", "Can see identities unmasked"),
    )

    def ready(self) -> None:
        """Connect the receivers that count failed log-ins. They do nothing unless the project uses the backend."""
        from django.contrib.auth.signals import user_logged_in, user_login_failed

        user_login_failed.connect(_login_failed, dispatch_uid="redis_kit.throttling.login_failed")
        user_logged_in.connect(_logged_in, dispatch_uid="redis_kit.throttling.logged_in")

    def checks(self) -> Iterable[CheckMessage]:
        """Yield messages about wrong functions, rates, names and connections, and about settings without effect."""
        from redis_kit.throttling.checks import messages

        yield from messages()


# The module of log-ins loads the client library, so it is imported at the first log-in, not at start-up.
def _login_failed(*, credentials: dict[str, Any], request: Any = None, **kwargs: Any) -> None:
    from redis_kit.throttling import logins

    if logins.active():
        logins.count(request, credentials)


def _logged_in(*, user: Any, request: Any = None, **kwargs: Any) -> None:
    from redis_kit.throttling import logins

    if logins.active():
        logins.forget(request, user)
