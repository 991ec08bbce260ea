"""A log of calls: exact in every period."""

from collections.abc import Sequence

from redis_kit.core.errors import InvalidValue
from redis_kit.core.values.rates import MICROSECONDS, Rate
from redis_kit.throttling.strategies.base import State, Strategy, fragment

LARGEST = 10_000  # limit


class SlidingLog(Strategy):
    """Never more than ``limit`` calls in any period, wherever it starts.

    Stores the time of each allowed call in 8 bytes, up to the largest limit, which is at most 10,000.
    """

    kind, lua = "sliding_log", fragment("sliding_log")

    def __init__(self, rates: Sequence[Rate]) -> None:
        super().__init__(rates)
        largest = max((rate.limit for rate in rates), default=1)
        if largest > LARGEST:
            raise InvalidValue(f"The strategy sliding_log stores at most {LARGEST} calls, not {largest}: use gcra.")
        periods = [round(rate.period * MICROSECONDS) for rate in rates]
        pairs = zip((rate.limit for rate in rates), periods, strict=True)
        self.numbers = (largest, max(periods, default=1), *(number for pair in pairs for number in pair))

    def state(self, index: int, now: int, figures: Sequence[int], cost: int) -> State:
        """Read three numbers: calls in the period, time until the call has room, time until all have expired."""
        rate, (count, wait, reset) = self.rates[index], figures[3 * index : 3 * index + 3]
        return rate, rate.limit, rate.limit - count, wait, reset
