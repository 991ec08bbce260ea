"""Windows of the server's clock: each counted separately, or with a share of the previous one."""

from collections.abc import Sequence

from redis_kit.core.values.rates import MICROSECONDS, Rate
from redis_kit.throttling.strategies.base import State, Strategy, fragment
from redis_kit.throttling.values.decision import Decision


class _Windows(Strategy):
    def __init__(self, rates: Sequence[Rate]) -> None:
        super().__init__(rates)
        self.pairs = [(rate, round(rate.period * MICROSECONDS)) for rate in rates]
        self.numbers = tuple(number for rate, period in self.pairs for number in (rate.limit, period))


class FixedWindow(_Windows):
    """``limit`` calls in each window of the clock. Windows start at multiples of the period since 1970 (UTC).

    One small number per rate, and the cheapest strategy. Around the end of a window up to twice the limit can pass in
    one period; if that matters, use ``sliding_log`` or ``gcra``.
    """

    kind, lua = "fixed_window", fragment("fixed_window")

    def state(self, index: int, now: int, figures: Sequence[int], cost: int) -> State:
        """Read the count of the rate's window."""
        (rate, period), count = self.pairs[index], figures[index]
        remaining, rest = rate.limit - count, period - now % period
        return rate, rate.limit, remaining, rest if min(cost, rate.limit) > remaining else 0, rest if count else 0


class SlidingCounter(_Windows):
    """The calls of this window, and a share of the previous one: the part that the last period still covers.

    Two numbers per rate. It assumes that the calls of the previous window were evenly spread. If they were not, up to
    the whole share too many or too few calls can pass (Cloudflare's approximation, 2017).
    """

    kind, lua = "sliding_counter", fragment("sliding_counter")

    def state(self, index: int, now: int, figures: Sequence[int], cost: int) -> State:
        """Read the counts of this window and the previous one."""
        (rate, period), current, previous = self.pairs[index], figures[2 * index], figures[2 * index + 1]
        rest = period - now % period
        remaining = ((rate.limit - current) * period - previous * rest) // period
        room = rate.limit - min(cost, rate.limit)
        wait = self._wait(room, period, rest, current, previous) if remaining < rate.limit - room else 0
        return rate, rate.limit, remaining, wait, rest + period if current else rest if previous else 0

    def _wait(self, room: int, period: int, rest: int, current: int, previous: int) -> int:
        """Return the microseconds until what remains of both windows fits into ``room``."""
        if current <= room:
            return rest - (room - current) * period // previous
        return rest + period - room * period // current


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
