"""Sign-ins as a component."""

from django.apps import apps
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

        from redis_kit.signins import receivers
        from redis_kit.signins.mixin import SignInMixin

        user_logged_in.connect(receivers.logged_in, dispatch_uid="redis_kit.signins.logged_in")
        models = [model for model in apps.get_models() if issubclass(model, SignInMixin)]
        # An instance of a proxy may be deleted as one of its parent, too.
        for model in {*models, *(model._meta.concrete_model for model in models)}:
            post_delete.connect(receivers.deleted, sender=model, dispatch_uid="redis_kit.signins.deleted")
