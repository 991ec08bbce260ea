"""Windows of the clock, counted alone or with a share of the last one."""

import math
from fractions import Fraction

from tests.throttling.support.models.base import Model, Stand, period


class _Windows(Model):
    """For each rate: the number of the window of the last call, its count, and the count of the window before."""

    def reset(self):
        self.kept = [(-2, 0, 0)] * len(self.rates)

    def went_back(self, now):
        return any(kept[0] > now // period(rate) for kept, rate in zip(self.kept, self.rates, strict=True))

    def seen(self, now):
        """Return both counts as they are at a moment; a clock that went back finds those of the later window."""
        for (number, current, previous), rate in zip(self.kept, self.rates, strict=True):
            window = now // period(rate)
            yield (current, previous) if number >= window else (0, current) if number == window - 1 else (0, 0)

    def take(self, now, cost):
        pairs = zip(self.seen(now), self.rates, strict=True)
        self.kept = [(now // period(rate), current + cost, previous) for (current, previous), rate in pairs]

    def settle(self, now, stamp, cost, actual, before):
        counts = [list(pair) for pair in self.seen(now)]
        for pair, rate in zip(counts, self.rates, strict=True):
            behind = now // period(rate) - stamp // period(rate) if actual < cost else 0
            if behind in self.settled:
                pair[behind] = max(0, min(pair[behind] - (cost - actual), rate.limit))
        self.kept = [(now // period(rate), *pair) for pair, rate in zip(counts, self.rates, strict=True)]


class FixedWindow(_Windows):
    settled = (0,)

    def stands(self, now, cost):
        return [
            self._stand(now, count, rate, cost) for (count, _), rate in zip(self.seen(now), self.rates, strict=True)
        ]

    def _stand(self, now, count, rate, cost):
        rest = period(rate) - now % period(rate)
        room = count + cost <= rate.limit
        return Stand(room, rate.limit - count, 0 if room else rest, rest if count else 0)


class SlidingCounter(_Windows):
    settled = (0, 1)

    def stands(self, now, cost):
        return [self._stand(now, *pair, rate, cost) for pair, rate in zip(self.seen(now), self.rates, strict=True)]

    def _stand(self, now, current, previous, rate, cost):
        rest = period(rate) - now % period(rate)
        room = current + Fraction(previous * rest, period(rate)) + cost <= rate.limit
        left = math.floor(rate.limit - current - Fraction(previous * rest, period(rate)))
        reset = rest + period(rate) if current else rest if previous else 0
        return Stand(room, left, 0 if room else self._wait(now, current, previous, rate, cost), reset)

    def _wait(self, now, current, previous, rate, cost):
        """Search the first microsecond with room, in this window and then in the next."""
        start = now - now % period(rate)
        for begin, end, one, other in (
            (now, start + period(rate), current, previous),
            (start + period(rate), start + 2 * period(rate), 0, current),
        ):
            first = _first(begin, end, lambda at: self._used(at, one, other, rate) + cost <= rate.limit)  # noqa: B023
            if first is not None:
                return first - now
        return start + 2 * period(rate) - now

    def _used(self, at, current, previous, rate):
        return current + Fraction(previous * (period(rate) - at % period(rate)), period(rate))


def _first(begin, end, fits):
    """Return the first whole number from begin, before end, that fits; what fits goes on fitting."""
    if begin >= end or not fits(end - 1):
        return None
    low, high = begin, end - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle + 1, high)
    return low
