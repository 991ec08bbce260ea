"""A model of the algorithm in fractions of a second: the definition, with no thought of speed or of digits."""

from fractions import Fraction


class Model:
    """Several rates over one caller. ``now`` is whole microseconds."""

    def __init__(self, rates):
        self.rates = rates
        self.full = [Fraction(0)] * len(rates)  # calls that have not drained yet
        self.then = 0

    def hit(self, now, cost, *, consume=True):
        """Return allowed, and (remaining, seconds to wait, seconds to empty) of each rate."""
        passed = Fraction(now - self.then, 10**6)
        level = [
            max(Fraction(0), full - passed * rate.limit / Fraction(str(rate.period)))
            for full, rate in zip(self.full, self.rates, strict=True)
        ]
        after = [one + cost for one in level]
        allowed = all(one <= rate.burst for one, rate in zip(after, self.rates, strict=True))
        if allowed and consume:
            self.full, self.then = after, now
            level = after
        return allowed, [self._figures(*pair, cost) for pair in zip(level, self.rates, strict=True)]

    def _figures(self, level, rate, cost):
        speed = rate.limit / Fraction(str(rate.period))
        return int(rate.burst - level), float(max(0, level + cost - rate.burst) / speed), float(level / speed)
