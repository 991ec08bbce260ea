"""A log of the errors after which page views do not wait: each concerns one key, for good."""

import logging

from redis_kit.core.errors import RedisKitError
from redis_kit.core.logs.error_text import described, exc_info

logger = logging.getLogger("redis_kit.pageviews")

MAX_LOGGED = 100  # texts

_logged: set[str] = set()  # texts of errors


def log_once(error: Exception, message: str = "Redis refused page views for good: %s") -> None:
    """Log an error that repeats with each view, once for each text: the text of a wrong key names the key."""
    text = described(error)
    if text not in _logged:
        if len(_logged) >= MAX_LOGGED:
            _logged.clear()
        _logged.add(text)
        # The kit's errors say what to do; any other needs its traceback.
        logger.error(message, text, exc_info=None if isinstance(error, RedisKitError) else exc_info(error))
