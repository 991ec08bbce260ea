"""Sign-ins as a component."""

import sys
from collections.abc import Iterable
from typing import Any

from django.apps import apps
from django.core.checks import CheckMessage
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
        """Connect the receivers of log-ins, which does nothing unless the setting is on, and of deletions."""
        from django.contrib.auth.signals import user_logged_in
        from django.db.models.signals import post_delete

        user_logged_in.connect(_logged_in, dispatch_uid="redis_kit.signins.logged_in")
        mixin = sys.modules.get("redis_kit.signins.mixin")  # a project without sign-ins does not import it
        models = [model for model in apps.get_models() if mixin and issubclass(model, mixin.SignInMixin)]
        # An instance of a proxy may be deleted as one of its parent, too.
        for model in {*models, *(model._meta.concrete_model for model in models)}:
            post_delete.connect(_deleted, sender=model, dispatch_uid="redis_kit.signins.deleted")

    def checks(self) -> Iterable[CheckMessage]:
        """Yield a warning if the attribute with the time zone is missing in the models that sign in."""
        from redis_kit.signins.checks import messages

        return messages()


# These modules load the client library, so they are imported at the first log-in or deletion, not at start-up.
def _logged_in(*, user: Any, **kwargs: Any) -> None:
    from redis_kit.signins import receivers

    receivers.logged_in(user=user)


def _deleted(*, instance: Any, using: str, **kwargs: Any) -> None:
    from redis_kit.signins import receivers

    receivers.deleted(instance=instance, using=using)
