"""GCRA and the token bucket: a bucket that drains, in fractions of a call."""

import math
from fractions import Fraction

from tests.throttling.support.models.base import Model, Stand, period


class Bucket(Model):
    def reset(self):
        self.full, self.then = [Fraction(0)] * len(self.rates), None

    def mark(self):
        return self.full

    def went_back(self, now):
        return self.then is not None and now < self.then

    def levels(self, now):
        """Drained since the last call; a clock that went back raises them, to the brim at most."""
        passed = now - (now if self.then is None else self.then)
        pairs = zip(self.full, self.rates, strict=True)
        return [max(Fraction(0), min(full - passed * speed(rate), Fraction(rate.burst))) for full, rate in pairs]

    def stands(self, now, cost):
        return [self._stand(*pair, cost) for pair in zip(self.levels(now), self.rates, strict=True)]

    def _stand(self, level, rate, cost):
        over = level + cost - rate.burst
        wait = math.ceil(over / speed(rate))
        return Stand(over <= 0, math.floor(rate.burst - level), wait, math.ceil(level / speed(rate)))

    def take(self, now, cost):
        self.full, self.then = [level + cost for level in self.levels(now)], now

    def settle(self, now, stamp, cost, actual, before):
        """Give back, of what was in the bucket at the call, what can't have drained since."""
        levels = self.levels(now)
        for place, rate in enumerate(self.rates):
            change = Fraction(cost - actual)
            if change > 0:
                change = max(Fraction(0), min(change, before[place] - (now - stamp) * speed(rate)))
            levels[place] = max(Fraction(0), min(levels[place] - change, Fraction(rate.burst)))
        self.full, self.then = levels, now


def speed(rate):
    """Return how many calls drain in a microsecond."""
    return Fraction(rate.limit, period(rate))
