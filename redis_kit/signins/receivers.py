"""Receivers of signals: sign-ins at a log-in, and their end with the deletion of an instance."""

import logging
from typing import Any

from django.db import transaction

from redis_kit.core import conf
from redis_kit.core.errors import RedisKitError
from redis_kit.core.logs.rate_limit import LogRateLimit
from redis_kit.signins.database.record import rows_of
from redis_kit.signins.mixin import SignInMixin
from redis_kit.signins.settings import SignInSettings
from redis_kit.signins.users.changes import Changes

logger = logging.getLogger("redis_kit")
_log_limit = LogRateLimit()


def logged_in(user: Any) -> None:
    """Sign in a user, if ``AT_LOG_IN`` is on. A failure, of the project's code too, must not prevent the log-in.

    It is logged, at most once a minute.
    """
    if not conf.section(SignInSettings).AT_LOG_IN:
        return
    try:
        SignInMixin.sign_in(user)  # also for a user whose proxy model has the mixin
    except Exception as error:
        if _log_limit.allows(type(error).__name__):
            _log("a log-in was not counted", error)


def deleted(instance: Any, using: str) -> None:
    """Erase the sign-ins of an instance that was deleted: rows at once, and Redis after the commit."""
    rows_of(instance).delete()
    model, pk = type(instance), instance.pk

    def erase() -> None:
        try:
            changes = Changes(model, pk)
            changes.run_flow(changes.erase())
        except RedisKitError as error:
            remedy = f"run {model.__name__}(pk={pk!r}).erase_sign_ins()"
            _log(f"{model._meta.label} {pk} was deleted, and its sign-ins were not: {remedy}", error)

    transaction.on_commit(erase, using=using, robust=True)


def _log(text: str, error: Exception) -> None:
    """Log an error, with a traceback unless it is one of the kit, which says enough."""
    unexpected = None if isinstance(error, RedisKitError) else error
    logger.error("signins: %s: %s", text, str(error) or type(error).__name__, exc_info=unexpected)
