"""The decision of a throttle on a call, and the ban that its refusals may end in."""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from redis_kit.core.errors import InvalidValue
from redis_kit.core.values.numbers import is_number, is_whole
from redis_kit.core.values.rates import MICROSECONDS, Rate

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


LONGEST = 30 * 86_400  # seconds
MOST_LENGTHS = 8


@dataclass(frozen=True)
class Ban:
    """Ban an identity that is refused ``after`` times within ``within`` seconds.

    ``seconds`` is the length of a ban, or a sequence of lengths for the first ban, the second and so on, such as
    ``(60, 300, 3600)``. The last length repeats. Bans are remembered for a day after their end. Refusals that a process
    repeats from memory count too: it asks the server again once they suffice for a ban. Times are at most 30 days;
    ``after`` is at least 1. Raises InvalidValue.
    """

    after: int
    within: float
    seconds: float | tuple[float, ...]

    def __post_init__(self) -> None:
        lengths = self.seconds if isinstance(self.seconds, (tuple, list)) else (self.seconds,)
        object.__setattr__(self, "seconds", tuple(lengths))
        if not is_whole(self.after) or self.after < 1:
            raise InvalidValue(f"A ban comes after 1 or more refusals, not after {self.after!r}.")
        if not 1 <= len(lengths) <= MOST_LENGTHS:
            raise InvalidValue(
                f"seconds of a ban is one length or a sequence of 1 to {MOST_LENGTHS}, not of {len(lengths)}."
            )
        if not all(is_number(length) and 0.001 <= length <= LONGEST for length in (self.within, *lengths)):
            raise InvalidValue(
                f"within and seconds of a ban are 0.001 to {LONGEST:,} seconds, "
                f"not {self.within!r} and {self.seconds!r}."
            )

    @property
    def text(self) -> str:
        """Return the ban as the script reads it, in microseconds."""
        return " ".join(
            map(str, (self.after, *(round(seconds * MICROSECONDS) for seconds in (self.within, *self.lengths))))
        )

    @property
    def lengths(self) -> tuple[float, ...]:
        """Return the lengths of the first ban, the second, and so on."""
        return self.seconds if isinstance(self.seconds, tuple) else (self.seconds,)


def read_ban(given: Any) -> Ban | None:
    """Return the ban that a setting stands for. Raises InvalidValue."""
    if given is None or isinstance(given, Ban):
        return given
    if len(given) != 3:
        raise InvalidValue(f"A ban is (after, within, seconds), so it has 3 parts, not {len(given)}.")
    return Ban(*given)
