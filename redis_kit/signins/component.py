"""Sign-ins as a component."""

from typing import Any

from django.utils.translation import gettext_lazy as _

from redis_kit.core.component import Component
from redis_kit.signins.settings import SignInSettings


class SignIns(Component):
    """Daily sign-ins: streaks, calendars, milestones."""

    settings = SignInSettings
    commands = (
        "bitcount bitfield_ro bitpos get getbit getrange lindex llen lrange lset mget pexpire rpush set "
        "setbit strlen unlink zadd zcard zcount zrange zrem zremrangebyscore"
    )
    panels = ("redis_kit.signins.dashboard.panel.SignInsPanel",)
    group = _("Visitors")
    metrics = ("redis_kit.signins.metrics.SignInMetrics",)

    def ready(self) -> None:
        """Connect the receiver that signs in users who log in. It does nothing unless the setting is on."""
        from django.contrib.auth.signals import user_logged_in

        user_logged_in.connect(_logged_in, dispatch_uid="redis_kit.signins.logged_in")


# The module loads the client library, so it is imported at the first log-in, not at start-up.
def _logged_in(*, user: Any, **kwargs: Any) -> None:
    from redis_kit.signins import logins

    logins.logged_in(user)
