"""What chance predicts if each name falls into a slot, or onto a node, by itself: the binomial distribution."""

from collections import Counter
from collections.abc import Iterable
from math import exp, inf, lgamma, log, log1p, sqrt


def deviation(names: int, share: float) -> float:
    """Return the standard deviation of how many of the names fall into a bin that gets this share of them."""
    return sqrt(names * share * (1 - share))


def largest(names: int, shares: Iterable[float]) -> int:
    """Return the number that the fullest bin exceeds in half of all cases, given the share of each bin.

    The bins count as independent, which they nearly are unless there are two or three of them.
    """
    bins = Counter(shares)
    low, high = 0, names
    while low < high:
        middle = (low + high) // 2
        chance = sum(count * _log_at_most(names, share, middle) for share, count in bins.items())
        low, high = (low, middle) if chance >= log(0.5) else (middle + 1, high)
    return low


def _log_at_most(names: int, share: float, most: int) -> float:
    """Return the logarithm of the chance that a bin gets at most so many names."""
    if share >= 1 or most < names * share - 1:
        return 0.0 if most >= names else -inf
    above = _above(names, share, most)
    return log1p(-above) if above < 1 else -inf


def _above(names: int, share: float, most: int) -> float:
    """Return the chance that a bin gets more names than its mean and than ``most``."""
    count = most + 1
    if count > names:
        return 0.0
    ways = lgamma(names + 1) - lgamma(count + 1) - lgamma(names - count + 1)
    term = total = exp(ways + count * log(share) + (names - count) * log1p(-share))
    while count < names and term > total * 1e-15:
        term *= (names - count) / (count + 1) * share / (1 - share)
        count, total = count + 1, total + term
    return total
