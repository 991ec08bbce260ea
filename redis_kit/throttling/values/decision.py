"""The decision of a throttle on a call."""

from typing import Literal, NamedTuple

from redis_kit.core.values.rates import Rate

Reason = Literal["", "exempt", "banned", "shadow", "outage", "local", "unasked"]


class Decision(NamedTuple):
    """The result of a hit. Truthy if the call is allowed.

    - ``rate``: the rate that decided, to which the other figures belong. It is the one with the longest wait, else the
      one with the fewest remaining calls. None if no rate decided.
    - ``limit``: how many calls may come at once; ``UNLIMITED`` without a rate.
    - ``remaining``: how many of them may come now; ``UNLIMITED`` without a rate.
    - ``retry_after``: in how many seconds a refused call may be retried; 0 if allowed, infinity if the limit is 0.
      During a ban it is the end of the ban, or when the rate has room if that is later.
    - ``reset_after``: in how many seconds nothing is counted any more.
    - ``reason``: "" if the rates decided, else one of

      - ``exempt`` and ``banned``: a rule decided,
      - ``shadow``: allowed, but would be refused without shadow mode,
      - ``outage``: the failure policy answered,
      - ``local``: the failure policy answered by counting in this process,
      - ``unasked``: another throttle refused from memory.
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
