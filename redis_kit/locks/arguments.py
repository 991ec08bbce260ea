"""Arguments of locks and semaphores, checked before anything is sent."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Literal, TypedDict

from redis_kit.core.errors import InvalidValue
from redis_kit.core.text import shortened
from redis_kit.core.values import numbers

Seconds = float | timedelta
Release = Literal["on_exit", "on_commit"]


class LeaseOptions(TypedDict, total=False):
    """The arguments of locks and semaphores about their leases. See BaseLock."""

    timeout: Seconds | None
    renew: bool
    max_hold: Seconds | None
    on_lost: Callable[[Any], Any] | None
    release: Release
    database: str
    using: str


class LockOptions(LeaseOptions, total=False):
    """The same, and what only locks have."""

    reentrant: bool


_TIMEOUT = "Write timeout=, the length of a lease in seconds."
_RENEW = "Write renew=True, which renews the lease in the background."
_UNNEEDED = "Leave it out: waiters are woken, and leases belong to their thread or task."
#: Names of arguments in other libraries, with ours.
HINTS = {
    **dict.fromkeys(("ttl", "expire", "expires", "lease", "lease_time", "duration", "auto_release_time"), _TIMEOUT),
    **dict.fromkeys(("auto_renewal", "auto_renew", "auto_extend", "auto_extension", "renewal"), _RENEW),
    **dict.fromkeys(("sleep", "retry_delay", "retry_interval", "thread_local", "retry_times"), _UNNEEDED),
    **dict.fromkeys(("wait", "wait_timeout"), "Write blocking_timeout=, the seconds that a caller waits."),
    "key": "The name is the first argument.",
}
HINTS_OF_ACQUIRE = HINTS | {
    "timeout": "Write blocking_timeout=, the seconds to wait. The length of the lease belongs to the lock itself.",
    "block": "Write blocking=.",
}

TIMEOUT = (0.1, 86_400.0)
BLOCKING_TIMEOUT = (0.0, 31_536_000.0)  # a year; None waits for ever
MAX_HOLD = (0.1, 31_536_000.0)
LIMIT = (1, 1_000_000)


def seconds(name: str, value: Any, allowed: tuple[float, float]) -> float:
    """Return a number of seconds, or a timedelta, as a float. Raises InvalidValue naming the range."""
    number = value.total_seconds() if isinstance(value, timedelta) else value
    return numbers.seconds(name, number, allowed)


def flag(name: str, value: Any) -> bool:
    """Return True or False. Raises InvalidValue for anything else."""
    if not isinstance(value, bool):
        raise InvalidValue(f"{name} must be True or False, not {shortened(value)}.")
    return value


def blocking_seconds(blocking_timeout: Any) -> float | None:
    """Return for how many seconds to wait; None waits for ever."""
    return None if blocking_timeout is None else seconds("blocking_timeout", blocking_timeout, BLOCKING_TIMEOUT)
