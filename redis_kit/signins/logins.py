"""Sign-ins of users who log in, if the setting ``AT_LOG_IN`` is on."""

import logging
from typing import Any

from redis_kit.core import conf
from redis_kit.core.errors import RedisKitError
from redis_kit.core.logs.rate_limit import LogRateLimit
from redis_kit.signins.mixin import SignInMixin
from redis_kit.signins.settings import SignInSettings

logger = logging.getLogger("redis_kit")
_log_limit = LogRateLimit()


def logged_in(user: Any) -> None:
    """Sign in a user. A failure is logged, at most once a minute: it must not keep anybody from logging in."""
    if not conf.section(SignInSettings).AT_LOG_IN:
        return
    try:
        SignInMixin.sign_in(user)  # also for a user whose proxy model has the mixin
    except RedisKitError as error:
        _log(error)


def _log(error: RedisKitError) -> None:
    if _log_limit.allows(type(error).__name__):
        logger.error("signins: a log-in was not counted: %s", error)
