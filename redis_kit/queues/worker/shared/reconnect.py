"""How a worker survives an outage: it retries without end, at random moments so that workers do not come all at once.

It also retries while the server refuses its password, which an operator may be changing.
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
UNAVAILABLE = (RedisUnavailable, AuthenticationFailed)  # a worker retries: these pass, or an operator mends them
FIRST, LONGEST = 0.05, 2.0  # seconds


def pause(attempt: int) -> float:
    """Return the seconds to wait after a failed attempt, counted from 0: full jitter, 2 s at most."""
    return full_jitter(attempt, first=FIRST, longest=LONGEST)


class Outage:
    """Logs a lost connection once, and once that it works again.

    A connection that is lost again is logged a minute after the last such line, if it still is: of a Cluster, the node
    of one duty may be lost, and that of the next one not. A refused password is logged each minute, since an operator
    has to act.
    """

    def __init__(self) -> None:
        self.lasts = self._logged = False
        self._log_limit = LogRateLimit()

    def say(self, error: RedisUnavailable | AuthenticationFailed | None) -> None:
        """Note how the last call went."""
        if isinstance(error, AuthenticationFailed):
            self._log_limit.log(logger.error, "access", "Redis refuses the worker's credentials; retrying: %s", error)
            self._logged = True
        elif error and not self._logged and self._log_limit.allows("lost"):
            logger.error("Lost connection to Redis; retrying: %s", error)
            self._logged = True
        elif self._logged and not error:
            logger.warning("Reconnected to Redis.")
            self._logged = False
        self.lasts = error is not None


def until_answered(call: Callable[[], Answer], given_up: Event, outage: Outage | None = None) -> Answer:
    """Repeat a call until the server answers, and say so to ``outage``. Once ``given_up`` is set, raise its error."""
    for attempt in count():
        try:
            answer = call()
        except UNAVAILABLE as error:
            if outage:
                outage.say(error)
            if given_up.wait(pause(attempt)):
                raise
        else:
            if outage:
                outage.say(None)
            return answer
    raise AssertionError
