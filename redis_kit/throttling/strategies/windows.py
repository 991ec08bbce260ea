"""Windows of the server's clock: counted each for itself, or the last one weighed in."""

from collections.abc import Sequence

from redis_kit.throttling.strategies.base import State, Strategy, fragment
from redis_kit.throttling.values.rates import MICROSECONDS, Rate


class _Windows(Strategy):
    def __init__(self, rates: Sequence[Rate]) -> None:
        super().__init__(rates)
        self.pairs = [(rate, round(rate.period * MICROSECONDS)) for rate in rates]
        self.numbers = tuple(number for rate, period in self.pairs for number in (rate.limit, period))


class FixedWindow(_Windows):
    """So many calls in each window of the clock, which starts at a whole multiple of the period since 1970 (UTC).

    One small number per rate, and the cheapest. Around the end of a window up to twice the limit can pass within one
    period: use ``sliding_log`` or ``gcra`` where that matters.
    """

    kind, lua = "fixed_window", fragment("fixed_window")

    def state(self, place: int, now: int, figures: Sequence[int], cost: int) -> State:
        """Read the count of the rate's window."""
        (rate, period), count = self.pairs[place], figures[place]
        left, rest = rate.limit - count, period - now % period
        return rate, rate.limit, left, rest if min(cost, rate.limit) > left else 0, rest if count else 0


class SlidingCounter(_Windows):
    """The calls of this window and a share of those of the last: as much of it as a period from now back still covers.

    Two numbers per rate. Assumes that the last window's calls were spread evenly, so up to that window's whole share
    too many can pass in some stretch of a period, and as many be refused (Cloudflare's approximation, 2017).
    """

    kind, lua = "sliding_counter", fragment("sliding_counter")

    def state(self, place: int, now: int, figures: Sequence[int], cost: int) -> State:
        """Read the counts of this window and the last."""
        (rate, period), current, previous = self.pairs[place], figures[2 * place], figures[2 * place + 1]
        rest = period - now % period
        left = ((rate.limit - current) * period - previous * rest) // period
        room = rate.limit - min(cost, rate.limit)
        wait = self._wait(room, period, rest, current, previous) if left < rate.limit - room else 0
        return rate, rate.limit, left, wait, rest + period if current else rest if previous else 0

    def _wait(self, room: int, period: int, rest: int, current: int, previous: int) -> int:
        """Return the microseconds until what is left of both windows fits into ``room``."""
        if current <= room:
            return rest - (room - current) * period // previous
        return rest + period - room * period // current
