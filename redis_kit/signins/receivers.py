"""Receivers of signals: sign-ins at a log-in, and their end with the deletion of an instance."""

from typing import Any

from django.db import transaction

from redis_kit.core import conf
from redis_kit.core.errors import RedisKitError
from redis_kit.signins.database.record import rows_of
from redis_kit.signins.errors import log_failure, log_repeated_failure
from redis_kit.signins.mixin import SignInMixin, store
from redis_kit.signins.settings import SignInSettings
from redis_kit.signins.users.changes import Changes


def logged_in(*, user: Any, **options: Any) -> None:
    """Sign in a user, if ``AT_LOG_IN`` is on. A failure, of the project's code too, must not prevent the log-in.

    It is logged, at most once a minute.
    """
    if not conf.section(SignInSettings).AT_LOG_IN:
        return
    try:
        SignInMixin.sign_in(user)  # also for a user whose proxy model has the mixin
    except Exception as error:
        log_repeated_failure("a log-in was not counted", error)


def deleted(*, instance: Any, using: str, **options: Any) -> None:
    """Erase the sign-ins of an instance that was deleted: rows at once, and Redis after the commit."""
    rows_of(instance).delete()
    model, pk = type(instance), instance.pk

    def erase() -> None:
        try:
            store("").run_flow(Changes(model, pk).erase())
        except RedisKitError as error:
            remedy = f"run {model.__name__}(pk={pk!r}).erase_sign_ins()"
            log_failure(f"{model._meta.label} {pk} was deleted, and its sign-ins were not: {remedy}", error)

    transaction.on_commit(erase, using=using, robust=True)
