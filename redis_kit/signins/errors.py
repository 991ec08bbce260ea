"""The error of sign-ins, and the log of failures that nobody is told."""

import logging

from redis_kit.core.errors import RedisKitError
from redis_kit.core.logs.rate_limit import LogRateLimit

logger = logging.getLogger("redis_kit")
_log_limit = LogRateLimit()


class NoneLeft(RedisKitError):
    """The make-ups or freezes of the day's month are used up. Nothing was changed."""


def log_failure(text: str, error: Exception) -> None:
    """Log an error, with a traceback unless it is one of the kit, which says enough."""
    unexpected = None if isinstance(error, RedisKitError) else error
    logger.error("signins: %s: %s", text, str(error) or type(error).__name__, exc_info=unexpected)


def log_repeated_failure(text: str, error: Exception) -> None:
    """Log an error of a type that may come with each request: at most once a minute."""
    if _log_limit.allows(f"{text} {type(error).__name__}"):
        log_failure(text, error)
