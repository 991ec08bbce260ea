"""Bans: identities that are refused too often are refused for some time."""

from dataclasses import dataclass
from typing import Any

from redis_kit.core.errors import InvalidValue
from redis_kit.core.values.numbers import is_number, is_whole
from redis_kit.core.values.rates import MICROSECONDS

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


def read(given: Any) -> Ban | None:
    """Return the ban that a setting stands for. Raises InvalidValue."""
    if given is None or isinstance(given, Ban):
        return given
    if len(given) != 3:
        raise InvalidValue(f"A ban is (after, within, seconds), so it has 3 parts, not {len(given)}.")
    return Ban(*given)
