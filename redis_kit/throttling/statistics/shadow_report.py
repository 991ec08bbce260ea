"""The report on a throttle in shadow mode: what identities want, and the rate to propose."""

from collections.abc import Sequence
from typing import NamedTuple

from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow
from redis_kit.core.steps import Batch, Call
from redis_kit.core.values.rates import Rate
from redis_kit.throttling.engine.base import BaseThrottle, checked_throttle
from redis_kit.throttling.keys import DEMAND
from redis_kit.throttling.statistics import counters
from redis_kit.throttling.statistics.counters import DAY

SHARE = 0.999  # of the windows that a proposed rate does not limit


class ShadowReport(NamedTuple):
    """The counts of a throttle in shadow mode, in up to seven days.

    A window is a period of the throttle's first ``rate`` in which an identity made calls.

    - ``allowed`` and ``refused``: calls of the last day.
    - ``windows``: the number of windows.
    - ``usual``, ``high`` and ``highest``: the largest number of calls in 50 %, 99.9 % and all of the windows. Above 100
      they are rounded to two digits.
    - ``proposed``: a rate of the same period that limits none of 99.9 % of the windows; None without windows.
    """

    rate: Rate
    allowed: int
    refused: int
    windows: int
    usual: int
    high: int
    highest: int
    proposed: Rate | None

    @property
    def share(self) -> float:
        """Return the share of the calls that would have been refused, 0 to 1."""
        return self.refused / ((self.allowed + self.refused) or 1)


def shadow_report(throttle: BaseThrottle) -> ShadowReport:
    """Return the report on a throttle in shadow mode. One round trip.

    Raises InvalidValue if the throttle is not in shadow mode or has no rate, and RedisUnavailable.
    """
    return checked_throttle(throttle).run_flow(_checked(throttle))


async def ashadow_report(throttle: BaseThrottle) -> ShadowReport:
    """See shadow_report()."""
    return await checked_throttle(throttle).arun_flow(_checked(throttle))


def read(throttle: BaseThrottle) -> Flow[ShadowReport | None]:
    """Read the report of a throttle; None if it has none. One round trip, or none."""
    if not (throttle.shadow and throttle.counted_rates):
        return None
    stored, fields = yield Batch([counters.stored(throttle, DAY), Call("HGETALL", throttle.key(DEMAND))])
    day = counters.decoded(DAY, *stored)
    allowed, refused = sum(minute.allowed for minute in day), sum(minute.refused for minute in day)
    return _report(throttle.counted_rates[0], allowed, refused, fields)


def _checked(throttle: BaseThrottle) -> Flow[ShadowReport]:
    report = yield from read(throttle)
    if report is None:
        raise InvalidValue(f"The throttle {throttle.name!r} has no report: it needs shadow=True and a rate.")
    return report


def _report(rate: Rate, allowed: int, refused: int, fields: Sequence[bytes]) -> ShadowReport:
    counts = sorted((int(calls), int(windows)) for calls, windows in zip(fields[::2], fields[1::2], strict=True))
    windows = sum(number for _, number in counts)
    usual, high, highest = (_quantile(counts, share * windows) for share in (0.5, SHARE, 1.0))
    proposed = Rate(high, rate.period) if windows else None
    return ShadowReport(rate, allowed, refused, windows, usual, high, highest, proposed)


def _quantile(counts: Sequence[tuple[int, int]], rank: float) -> int:
    passed = 0
    for calls, windows in counts:
        passed += windows
        if passed >= rank:
            return calls
    return 0
