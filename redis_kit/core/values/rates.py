"""Rates and their grammar."""

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from redis_kit.core.errors import InvalidRate
from redis_kit.core.text import SECONDS, shortened
from redis_kit.core.values.numbers import is_number, is_whole

GRAMMAR = (
    "Write a rate as '10/m', '10_000/d', '15/5m', '10/300' (seconds) or '100 per hour'. Append ' burst 20' to allow "
    "another number at once; separate several rates with ';'. Periods are s, m, h, d, w, or "
    "second, minute, hour, day, week, month, year. '0/s' never allows, None always does."
)
MOST_RATES = 8  # of one throttle
EXACT = 2**52  # a level and a cost up to this add up exactly in the server's 53-bit numbers
LARGEST = 10**9  # calls; up to this number EXACT reduces a rate by at most 2 in 10 million
MICROSECONDS = 1_000_000
LONGEST = 10**12  # seconds of a period

_SECONDS = SECONDS | {"month": 2_592_000, "months": 2_592_000, "year": 31_536_000, "years": 31_536_000}
_NUMBER = "[0-9]+(?:_[0-9]+)*"  # 10_000, as int() reads it
_RATE = re.compile(
    rf"\s*(?P<limit>{_NUMBER})\s*(?:/|per)\s*(?P<count>(?:{_NUMBER})?)\s*(?P<unit>[a-z]*)"
    rf"(?:\s+burst\s+(?P<burst>{_NUMBER}))?\s*",
    re.ASCII | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Rate:
    """``limit`` calls in ``period`` seconds. ``burst`` calls may come at once, by default ``limit``.

    A limit of 0 allows nothing. Raises InvalidRate for a number out of range: limit from 0 to 10^9, burst from 1 to
    10^9, period from a microsecond, and at most 142 years until a burst is available again.
    """

    limit: int
    period: float
    burst: int = -1

    def __post_init__(self) -> None:
        if self.burst == -1:
            object.__setattr__(self, "burst", self.limit)
        is_period = is_number(self.period) and 0 < self.period <= LONGEST and self._microseconds > 0
        if not (is_whole(self.limit) and is_whole(self.burst) and is_period):
            raise _invalid((self.limit, self.period, self.burst), "its numbers must be whole, its period 0 to 10^12")
        if self.limit < 0 or self.burst < min(self.limit, 1):
            raise _invalid((self.limit, self.period, self.burst), "limit starts at 0 and burst at 1")
        if max(self.limit, self.burst) > LARGEST:
            raise _invalid((self.limit, self.period, self.burst), f"limit and burst are at most {LARGEST}")
        if self.burst * self._microseconds > EXACT * max(self.limit, 1):
            raise _invalid(
                (self.limit, self.period, self.burst), "its burst takes more than 142 years to be available again"
            )

    def __str__(self) -> str:
        unit = next((unit for unit in ("w", "d", "h", "m") if self.period % _SECONDS[unit] == 0), "s")
        count = self.period / _SECONDS[unit]
        return f"{self.limit}/{'' if count == 1 else f'{count:.10g}'}{unit}" + (
            "" if self.burst == self.limit else f" burst {self.burst}"
        )

    @property
    def exact(self) -> tuple[int, int]:
        """Return the rate as two whole numbers: what drains in a microsecond, and what one call adds.

        If exact numbers would be too large for the server, as for 1234567/d, the rate is lower by an insignificant
        part.
        """
        ratio = Fraction(self.limit, self._microseconds)
        if self.burst * ratio.denominator <= EXACT:
            return ratio.numerator, ratio.denominator
        drain = EXACT * self.limit // (self.burst * self._microseconds)
        return drain, -(-drain * self._microseconds // self.limit)

    @property
    def _microseconds(self) -> int:
        return round(self.period * MICROSECONDS)


def parse(value: Any) -> tuple[Rate, ...]:
    """Return the rates that text, a Rate, a tuple ``(limit, seconds)``, or a list of these stands for.

    None stands for no limit. Raises InvalidRate for anything else.
    """
    if value is None:
        return ()
    if isinstance(value, str):
        rates = [_read(part, value) for part in re.split("[;,|]", value)]
    elif isinstance(value, tuple) and value and all(isinstance(number, (int, float)) for number in value):
        rates = [_pair(value)]
    elif isinstance(value, (list, tuple)) and value and None not in value:
        rates = [rate for part in value for rate in parse(part)]
    elif isinstance(value, Rate):
        rates = [value]
    else:
        raise _invalid(value)
    if len(rates) > MOST_RATES:
        raise _invalid(value, f"a throttle has at most {MOST_RATES} rates")
    return tuple(rates)


def _read(part: str, whole: str) -> Rate:
    match = _RATE.fullmatch(part) if len(part) <= 80 else None
    if not match or not (match["count"] or match["unit"]) or match["unit"].lower() not in _SECONDS:
        raise _invalid(whole)
    seconds = _SECONDS[match["unit"].lower()] * int(match["count"] or 1)
    if not seconds:
        raise _invalid(whole, "its period must be above 0")
    return Rate(int(match["limit"]), seconds, int(match["burst"]) if match["burst"] else -1)


def _pair(value: tuple[Any, ...]) -> Rate:
    if len(value) != 2:
        raise _invalid(value)
    return Rate(*value)


def _invalid(value: Any, why: str = "") -> InvalidRate:
    return InvalidRate(f"The rate {shortened(value)} is not valid{': ' if why else ''}{why}. {GRAMMAR}")
