"""Leaky buckets: GCRA, which the book calls a funnel, and the token bucket, its mirror image."""

from collections.abc import Sequence

from redis_kit.core.values.rates import Rate
from redis_kit.throttling.strategies.base import State, Strategy, fragment


class LeakyBucket:
    """One rate in whole numbers: a call adds ``price`` to the level, and a microsecond drains ``drain``.

    ``share`` multiplies the price, for processes that each have a bucket and share the rate.
    """

    __slots__ = ("capacity", "drain", "limit", "price", "rate")

    def __init__(self, rate: Rate, *, share: int = 1) -> None:
        self.rate = rate
        self.drain, price = rate.exact
        self.price = price * share
        self.capacity = max(rate.burst * price, self.price)
        self.limit = self.capacity // self.price

    def state(self, level: int, cost: int) -> State:
        """Return the state at a level."""
        left = self.capacity - level
        wait = -((left - min(cost, self.limit) * self.price) // self.drain)
        return self.rate, self.limit, left // self.price, wait, -(-level // self.drain)


class GCRA(Strategy):
    """The generic cell rate algorithm (ITU-T I.371): smooth, with a separate burst, and one number per rate.

    In any T seconds at most ``burst + T * limit / period`` calls pass. The level of a leaky bucket is stored instead of
    the equivalent theoretical arrival time: in multiples of ``1 / limit`` of a microsecond it is exact for every rate.
    """

    kind, lua, bursts = "gcra", fragment("gcra"), True

    def __init__(self, rates: Sequence[Rate], *, share: int = 1) -> None:
        super().__init__(rates)
        self.buckets = [LeakyBucket(rate, share=share) for rate in rates]
        self.numbers = tuple(
            number for bucket in self.buckets for number in (bucket.drain, bucket.price, bucket.capacity)
        )

    def state(self, index: int, now: int, figures: Sequence[int], cost: int) -> State:
        """Read the rate's level."""
        return self.buckets[index].state(figures[index], cost)


class TokenBucket(GCRA):
    """A bucket of up to ``burst`` tokens, refilled at ``limit`` per period; a call takes as many tokens as it costs.

    The tokens are the free room in GCRA's bucket, so both make the same decisions with the same functions on the
    server. Their counts are stored separately.
    """
