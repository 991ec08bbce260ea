"""What a throttle answers."""

from typing import Literal, NamedTuple

from redis_kit.throttling.values.rates import Rate

Reason = Literal["", "exempt", "banned", "shadow", "outage", "local", "unasked"]


class Decision(NamedTuple):
    """Whether a call is allowed, which is what the decision is worth as a truth value, and how things stand after it.

    All figures are those of ``rate``, the rate that decided: the one that makes the caller wait longest, else the one
    that has least left. ``limit`` calls may come at once and ``remaining`` of them now; a refused caller may come
    again in ``retry_after`` seconds (0 when allowed, infinity where the limit is 0); in ``reset_after`` seconds all
    is as if it had never come. Without a rate, ``limit`` and ``remaining`` are ``UNLIMITED``.

    ``reason`` is "" where the rates decided, else ``exempt``, ``banned``, ``outage`` (the failure policy answered),
    ``local`` (it did, by counting in this process),
    ``shadow`` (allowed, and would have been refused) or ``unasked`` (another throttle refused from memory).
    """

    allowed: bool
    limit: int
    remaining: int
    retry_after: float
    reset_after: float
    rate: Rate | None = None
    reason: Reason = ""

    def __bool__(self) -> bool:
        return self.allowed


UNLIMITED = 2**53
