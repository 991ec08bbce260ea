"""How a worker outlasts an outage: it asks again for ever, at random moments so that not all come at once.

It does so too while the server refuses its password, which an operator may be changing.
"""

import logging
from collections.abc import Callable
from itertools import count
from threading import Event
from typing import TypeVar

from redis_kit.core.client.backoff import full_jitter
from redis_kit.core.errors import AuthenticationFailed, RedisUnavailable
from redis_kit.core.logs.rate_limit import LogRateLimit

logger = logging.getLogger("redis_kit.worker")
Answer = TypeVar("Answer")
AWAY = (RedisUnavailable, AuthenticationFailed)  # what a worker waits for: it ends by itself, or by an operator
FIRST, LONGEST = 0.05, 2.0  # seconds


def pause(attempt: int) -> float:
    """Return the seconds to wait after a failed attempt, counted from 0: full jitter, 2 s at most."""
    return full_jitter(attempt, first=FIRST, longest=LONGEST)


def until_answered(call: Callable[[], Answer], given_up: Event) -> Answer:
    """Make a call that may be repeated until the server answers, or until it is given up: then raise its error."""
    for attempt in count():
        try:
            return call()
        except AWAY:
            if given_up.wait(pause(attempt)):
                raise
    raise AssertionError


class Outage:
    """Whether the server is away: said once on the way down, and once when it is back.

    That it refuses the password is said each minute, since somebody has to act.
    """

    def __init__(self) -> None:
        self.lasts = False
        self._log_limit = LogRateLimit()

    def say(self, error: RedisUnavailable | AuthenticationFailed | None) -> None:
        """Take in how the last call went."""
        if isinstance(error, AuthenticationFailed):
            if self._log_limit.allows("access"):
                logger.error("The worker waits until Redis lets it in: %s", error)
        elif error and not self.lasts:
            logger.error("Redis is away, the worker waits for it: %s", error)
        elif self.lasts and not error:
            logger.warning("Redis is back.")
        self.lasts = error is not None
