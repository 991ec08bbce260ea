"""Arguments of queues and tasks, checked before anything is sent."""

import math
import re
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from redis_kit.core import dates
from redis_kit.core.errors import InvalidValue
from redis_kit.core.text import shortened
from redis_kit.core.values.numbers import is_number

Delay = float | timedelta
LONGEST_DELAY = 10 * 365 * 86_400  # seconds
PRIORITY = (-100, 100)
LIMIT = (1, 1000)
WAIT = (0, 86_400.0)  # seconds for the end of a call or a workflow
LONGEST_ID = 128  # characters
_ID = re.compile(r"[A-Za-z0-9_.-]+")


def milliseconds(delay: Any, name: str = "delay", *, positive: bool = False) -> int:
    """Return a delay in seconds, or a timedelta, as whole milliseconds, rounded up. Raises InvalidValue.

    With ``positive`` 0 is not allowed.
    """
    time = delay.total_seconds() if isinstance(delay, timedelta) else delay
    if not is_number(time) or not 0 <= time <= LONGEST_DELAY or (positive and not time):
        least = "more than 0 and at most" if positive else "0 to"
        raise InvalidValue(f"{name} must be {least} {LONGEST_DELAY:,} seconds or a timedelta, not {shortened(delay)}.")
    return math.ceil(time * 1000)


def moment(when: datetime) -> int:
    """Return a time as milliseconds since 1970, rounded up; one in the past means now. Raises InvalidValue."""
    when = dates.aware("run_after", when)
    latest = datetime.now(when.tzinfo) + timedelta(seconds=LONGEST_DELAY)
    if when > latest:
        raise InvalidValue(f"run_after is {when!r}; it must be within 10 years.")
    return max(1, math.ceil(when.timestamp() * 1000))


def identifier(name: str, value: Any, longest: int = LONGEST_ID) -> str:
    """Return the id of a job or worker. Raises InvalidValue naming the characters that it may have."""
    if not isinstance(value, str) or len(value) > longest or not _ID.fullmatch(value):
        allowed = f"1 to {longest} of the characters A-Z a-z 0-9 _ . -"
        raise InvalidValue(f"{name} must be {allowed}, not {shortened(value)}.")
    return value


def one_of(name: str, value: Any, allowed: Collection[str]) -> str:
    """Return one of some words. Raises InvalidValue naming them."""
    if not isinstance(value, str) or value not in allowed:
        raise InvalidValue(f"{name} must be one of {', '.join(allowed)}, not {shortened(value)}.")
    return value
