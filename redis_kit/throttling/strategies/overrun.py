"""Fixed windows that know whether anybody was refused in them."""

from collections.abc import Sequence

from redis_kit.throttling.strategies.base import State, fragment
from redis_kit.throttling.strategies.windows import FixedWindow
from redis_kit.throttling.values.decision import Decision


class Overrun(FixedWindow):
    """Fixed windows in which the first refused call is counted too; ``remaining`` is -1 from then on.

    For compat.py, whose callers ask afterwards whether a limit was passed, not whether a next call would pass it.
    """

    kind, lua = "overrun", fragment("overrun")

    def state(self, place: int, now: int, figures: Sequence[int], cost: int) -> State:
        """Read the count of the rate's window; the reset is its end, whether or not anything was counted."""
        period = self.pairs[place][1]
        return *super().state(place, now, figures, cost)[:4], period - now % period

    def decision(self, allowed: bool, now: int, figures: Sequence[int], cost: int) -> Decision:
        """Return the decision that the server's figures stand for."""
        found = super().decision(allowed, now, figures, cost)
        passed = any(count > rate.limit for (rate, _), count in zip(self.pairs, figures, strict=True))
        return found._replace(remaining=-1) if passed else found
