"""The answers to questions about page views."""

from datetime import date
from typing import NamedTuple, Self

STANDARD_ERROR = 0.0081  # of a HyperLogLog with the 16,384 registers that Redis has


class Visitors(int):
    """A number of visitors. It is not ``distinct`` if a visitor may count more than once in the range.

    That is so in a range of several days with ``VISITOR = "daily_salt"``, and in a range in which ``VISITOR`` or
    ``HASH_KEY`` changed.
    """

    distinct: bool

    def __new__(cls, count: int, *, distinct: bool = True) -> Self:
        """Return the number with its attribute."""
        made = super().__new__(cls, count)
        made.distinct = distinct
        return made

    @property
    def error(self) -> int:
        """Return the standard error, 0.81 %: two of three estimates are closer than that to the true number."""
        return round(self * STANDARD_ERROR)


class Day(NamedTuple):
    """The views and visitors of a page on one day, and the number of requests of bots."""

    day: date
    views: int
    visitors: int
    bots: int = 0


class Hour(NamedTuple):
    """The views and visitors of a page in one hour, from 0 to 23."""

    hour: int
    views: int
    visitors: int


class Trend(NamedTuple):
    """A page or the key of an object, and its views: each counts half after each half-life."""

    name: str
    score: float


class Overlap(NamedTuple):
    """The visitors that two pages have in common, with the standard error of that number.

    The error follows from that of all three estimates, so it is large if few of many visitors are common. ``distinct``
    is that of ``Visitors``.
    """

    common: int
    error: int
    first: int
    second: int
    union: int
    distinct: bool
