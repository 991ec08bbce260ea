"""Buckets that drain: GCRA, which is the book's funnel, and the token bucket, which is the same seen from above."""

from collections.abc import Sequence

from redis_kit.throttling.strategies.base import State, Strategy, fragment
from redis_kit.throttling.values.rates import Rate


class Meter:
    """One rate as a leaking bucket in whole numbers: a call adds ``price``, a microsecond takes ``drain`` away.

    ``share`` makes a call that much dearer, for one of that many processes with a bucket each.
    """

    __slots__ = ("capacity", "drain", "limit", "price", "rate")

    def __init__(self, rate: Rate, *, share: int = 1) -> None:
        self.rate = rate
        self.drain, price = rate.exact
        self.price = price * share
        self.capacity = max(rate.burst * price, self.price)
        self.limit = self.capacity // self.price

    def state(self, level: int, cost: int) -> State:
        """Return how it stands at a level."""
        left = self.capacity - level
        wait = -((left - min(cost, self.limit) * self.price) // self.drain)
        return self.rate, self.limit, left // self.price, wait, -(-level // self.drain)


class GCRA(Strategy):
    """The generic cell rate algorithm (ITU-T I.371): smooth, a burst apart from the rate, one number per rate.

    In any stretch of T seconds at most ``burst + T * limit / period`` calls pass. Kept as the level of a leaking
    bucket, the book's funnel, rather than as the theoretical arrival time that it is equal to: as whole multiples of
    ``1 / limit`` of a microsecond the level is exact for every rate.
    """

    kind, lua, bursts = "gcra", fragment("gcra"), True

    def __init__(self, rates: Sequence[Rate], *, share: int = 1) -> None:
        super().__init__(rates)
        self.meters = [Meter(rate, share=share) for rate in rates]
        self.numbers = tuple(number for one in self.meters for number in (one.drain, one.price, one.capacity))

    def state(self, place: int, now: int, figures: Sequence[int], cost: int) -> State:
        """Read the rate's level."""
        return self.meters[place].state(figures[place], cost)


class TokenBucket(GCRA):
    """Tokens that come one by one, ``limit`` in a period, up to ``burst`` of them; a call takes as many as it costs.

    The tokens that are left are the room in GCRA's bucket, so both decide alike and share their functions on the
    server; their counts are kept apart.
    """
