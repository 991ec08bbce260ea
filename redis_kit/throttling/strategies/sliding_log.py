"""A log of calls: exact in every stretch of time."""

from collections.abc import Sequence

from redis_kit.core.errors import InvalidValue
from redis_kit.throttling.strategies.base import State, Strategy, fragment
from redis_kit.throttling.values.rates import MICROSECONDS, Rate

MOST = 10_000


class SlidingLog(Strategy):
    """Never more than ``limit`` calls in any stretch of a period, wherever it starts.

    Keeps the moment of each call that passed, 8 bytes each, as many as the largest limit, which is at most 10,000.
    """

    kind, lua = "sliding_log", fragment("sliding_log")

    def __init__(self, rates: Sequence[Rate]) -> None:
        super().__init__(rates)
        largest = max((rate.limit for rate in rates), default=1)
        if largest > MOST:
            raise InvalidValue(f"The strategy sliding_log keeps at most {MOST} calls, not {largest}: use gcra.")
        periods = [round(rate.period * MICROSECONDS) for rate in rates]
        pairs = zip((rate.limit for rate in rates), periods, strict=True)
        self.numbers = (largest, max(periods, default=1), *(number for pair in pairs for number in pair))

    def state(self, place: int, now: int, figures: Sequence[int], cost: int) -> State:
        """Read three numbers: calls in the rate's period, time until one more has room, until all have aged."""
        rate, (count, wait, reset) = self.rates[place], figures[3 * place : 3 * place + 3]
        return rate, rate.limit, rate.limit - count, wait, reset
