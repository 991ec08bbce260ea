"""Shadow mode: what callers would want, counted without refusing any, and the rate to propose from that."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from redis_kit.core import scripts
from redis_kit.core.scripts import ScriptCall
from redis_kit.throttling.values.rates import MICROSECONDS, Rate

if TYPE_CHECKING:
    from redis_kit.throttling.engine.base import Limits

TALLY = scripts.load("redis_kit.throttling", "tally")
SHARE = 0.999  # of the callers' windows that a proposed rate leaves alone


class Report(NamedTuple):
    """What a throttle in shadow mode saw in up to seven days.

    ``rate`` is the throttle's first rate, ``windows`` the number of periods of it in which some caller came, and
    ``usual``, ``high`` and ``highest`` how often callers came in such a period: half of them no more often, 99.9 % of
    them no more often, the most eager one. ``allowed`` and ``refused`` count calls of the last day. ``proposed`` is a
    rate of the same period that leaves 99.9 % of the windows alone; None before anybody came. Above 100 the figures
    have two digits.
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
        """Return which part of the calls would have been refused, 0 to 1."""
        return self.refused / ((self.allowed + self.refused) or 1)


def tally(throttle: "Limits", caller: str, cost: int) -> ScriptCall:
    """Return the step that counts what a caller wants in the present period of the first rate."""
    keys = [f"{throttle.keys(caller)[0]}d", demand(throttle)]
    return TALLY(keys, [throttle.now(), cost, round(throttle.limited[0].period * MICROSECONDS)])


def demand(throttle: "Limits") -> str:
    """Return the key of the distribution."""
    return throttle.key("demand")


def summed(throttle: "Limits", allowed: int, refused: int, fields: Sequence[bytes]) -> Report:
    """Return the report on a distribution, as HGETALL replies with it."""
    counts = sorted((int(wanted), int(windows)) for wanted, windows in zip(fields[::2], fields[1::2], strict=True))
    rate, windows = throttle.limited[0], sum(number for _, number in counts)
    usual, high, highest = (_at(counts, share * windows) for share in (0.5, SHARE, 1.0))
    proposed = Rate(high, rate.period) if windows else None
    return Report(rate, allowed, refused, windows, usual, high, highest, proposed)


def _at(counts: Sequence[tuple[int, int]], place: float) -> int:
    passed = 0
    for wanted, windows in counts:
        passed += windows
        if passed >= place:
            return wanted
    return 0
