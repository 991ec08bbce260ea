"""Sign-ins as a component."""

import sys
from collections.abc import Iterable
from typing import Any

from django.apps import apps
from django.core.checks import CheckMessage
from django.db import transaction
from django.utils.translation import gettext_lazy as _

from redis_kit.core import conf
from redis_kit.core.component import Component
from redis_kit.core.errors import RedisKitError
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

        user_logged_in.connect(logged_in, dispatch_uid="redis_kit.signins.logged_in")
        mixin = sys.modules.get("redis_kit.signins.mixin")  # a project without sign-ins does not import it
        models = [model for model in apps.get_models() if mixin and issubclass(model, mixin.SignInMixin)]
        # An instance of a proxy may be deleted as one of its parent, too.
        for model in {*models, *(model._meta.concrete_model for model in models)}:
            post_delete.connect(deleted, sender=model, dispatch_uid="redis_kit.signins.deleted")

    def checks(self) -> Iterable[CheckMessage]:
        """Yield a warning if the attribute with the time zone is missing in the models that sign in."""
        from redis_kit.signins.checks import messages

        return messages()


# The modules that load the client library are imported at the first log-in or deletion, not at start-up.
def logged_in(*, user: Any, **options: Any) -> None:
    """Sign in a user, if ``AT_LOG_IN`` is on. A failure, of the project's code too, must not prevent the log-in.

    It is logged, at most once a minute.
    """
    from redis_kit.signins.errors import log_repeated_failure
    from redis_kit.signins.mixin import SignInMixin

    if not conf.section(SignInSettings).AT_LOG_IN:
        return
    try:
        SignInMixin.sign_in(user)  # also for a user whose proxy model has the mixin
    except Exception as error:
        log_repeated_failure("a log-in was not counted", error)


def deleted(*, instance: Any, using: str, **options: Any) -> None:
    """Erase the sign-ins of an instance that was deleted: rows at once, and Redis after the commit."""
    from redis_kit.signins.database.record import rows_of
    from redis_kit.signins.errors import log_failure
    from redis_kit.signins.segments import SignInStore
    from redis_kit.signins.users import SignInUser

    rows_of(instance).delete()
    model, pk = type(instance), instance.pk

    def erase() -> None:
        try:
            SignInStore().run_flow(SignInUser(model, pk).erase())
        except RedisKitError as error:
            remedy = f"run {model.__name__}(pk={pk!r}).erase_sign_ins()"
            log_failure(f"{model._meta.label} {pk} was deleted, and its sign-ins were not: {remedy}", error)

    transaction.on_commit(erase, using=using, robust=True)
