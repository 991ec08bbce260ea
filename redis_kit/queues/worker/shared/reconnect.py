"""How a worker outlasts an outage: it asks again for ever, at random moments so that not all come at once.

It does so too while the server refuses its password, which an operator may be changing.
"""

from collections.abc import Callable
from itertools import count
from threading import Event
from typing import TypeVar

from redis_kit.core.client.backoff import full_jitter
from redis_kit.core.errors import AuthenticationFailed, RedisUnavailable

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
