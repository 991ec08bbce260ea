"""How a worker goes on when something fails: its error is logged, a call repeated, a duty run again later.

Calls to a server that is down are repeated without end, at random moments so that workers do not come all at once; so
they are while it refuses the password, which an operator may be changing.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from math import inf
from threading import Event
from time import monotonic
from typing import TypeVar

from redis_kit.core.client.backoff import full_jitter
from redis_kit.core.errors import AuthenticationFailed, RedisUnavailable
from redis_kit.core.logs.error_text import described, exc_info
from redis_kit.core.logs.rate_limit import LogRateLimit
from redis_kit.queues.engine.feature import Duty

Value = TypeVar("Value")
logger = logging.getLogger("redis_kit.worker")
UNAVAILABLE = (RedisUnavailable, AuthenticationFailed)  # a worker retries: these pass, or an operator mends them
FLOOR = 0.01  # seconds between two runs of a duty, whatever it asks for
AGAIN = 0.5  # seconds from a run that failed to the next one
TURN = 1.0  # seconds after which run() returns to its caller, though more is due


def guarded(what: str, call: Callable[[], Value], otherwise: Value) -> Value:
    """Return what a call returns. If it fails, log that and return ``otherwise``: the job must not suffer."""
    try:
        return call()
    except BaseException as error:
        with suppress(BaseException):
            logger.log(logging.ERROR, "%s failed: %s", what, described(error), exc_info=exc_info(error))
        return otherwise


def pause(attempt: int) -> float:
    """Return the seconds to wait after a failed attempt, counted from 0: full jitter, 2 s at most."""
    return full_jitter(attempt, first=0.05, longest=2.0)


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


def until_answered(call: Callable[[], Value], given_up: Event, outage: Outage | None = None) -> Value:
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


class Duties:
    """Runs each duty when it is due.

    The first duty of the list goes before all others. These take turns: the one that has been due for longest is next.
    So a duty that is always due, or that takes long, keeps no other one from its turn.
    """

    def __init__(self, *duties: Duty) -> None:
        self._duties = duties
        self._not_before = dict.fromkeys(range(len(duties)), 0.0)  # on the monotonic clock
        self._log_limit = LogRateLimit()

    @property
    def next(self) -> float:
        """Return when a duty is due next, on the monotonic clock; inf without any."""
        return min(map(self._due, self._not_before), default=inf)

    def run(self) -> None:
        """Run what is due, for about a second at most."""
        end = monotonic() + TURN
        while (number := self._first_due()) is not None:
            if not self._run(number) or monotonic() >= end:
                return

    def _due(self, number: int) -> float:
        return max(self._duties[number].due, self._not_before[number])

    def _first_due(self) -> int | None:
        now = monotonic()
        due = [number for number in self._not_before if self._due(number) <= now]
        return 0 if 0 in due else min(due, key=self._due, default=None)

    def _run(self, number: int) -> bool:
        """Run a duty, and return whether the server is available."""
        duty = self._duties[number]
        pause = FLOOR
        try:
            duty.run()
        except UNAVAILABLE:
            pause = AGAIN
            return False
        except Exception:
            pause = AGAIN
            if self._log_limit.allows(f"{number}"):
                logger.exception("%s of the worker failed; it runs again.", type(duty).__name__)
        finally:
            self._not_before[number] = monotonic() + pause
        return True
