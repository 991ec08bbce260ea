"""Fixed windows that record whether a call was refused in them."""

from collections.abc import Sequence

from redis_kit.throttling.strategies.base import State, fragment
from redis_kit.throttling.strategies.windows import FixedWindow
from redis_kit.throttling.values.decision import Decision


class Overrun(FixedWindow):
    """Fixed windows in which the first refused call is counted too; ``remaining`` is -1 from then on.

    For compat.py: there a later look tells whether the limit was exceeded, not whether the next call would exceed it.
    """

    kind, lua = "overrun", fragment("overrun")

    def state(self, index: int, now: int, figures: Sequence[int], cost: int) -> State:
        """Read the count of the window. The reset is the end of the window, even if nothing was counted."""
        period = self.pairs[index][1]
        return *super().state(index, now, figures, cost)[:4], period - now % period

    def decision(self, allowed: bool, now: int, figures: Sequence[int], cost: int) -> Decision:
        """Return the decision for the figures of the server."""
        decision = super().decision(allowed, now, figures, cost)
        exceeded = any(count > rate.limit for (rate, _), count in zip(self.pairs, figures, strict=True))
        return decision._replace(remaining=-1) if exceeded else decision
