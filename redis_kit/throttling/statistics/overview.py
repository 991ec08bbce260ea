"""The figures of many throttles for the dashboard, each read for all of them together."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from redis_kit.core.flow import Flow
from redis_kit.core.gather import gather
from redis_kit.throttling.engine.base import BaseThrottle, asking, read_together
from redis_kit.throttling.rules import Rule, listed, of_identities
from redis_kit.throttling.statistics import counters, shadow_report
from redis_kit.throttling.statistics import offenders as most_refused
from redis_kit.throttling.statistics.counters import ThrottleCalls
from redis_kit.throttling.statistics.offenders import Offender
from redis_kit.throttling.statistics.shadow_report import ShadowReport


class ThrottleFigures(NamedTuple):
    """The figures of a throttle: calls by minute, most refused identities, rules, and the number of all rules.

    ``offender_rules`` are those of the most refused identities. ``report`` is the report of shadow mode.
    """

    throttle: BaseThrottle
    minutes: list[ThrottleCalls]
    offenders: list[Offender]
    offender_rules: list[Rule]
    rules: list[Rule]
    rule_count: int
    report: ShadowReport | None

    @property
    def override(self) -> Rule | None:
        """Return the override for all identities."""
        return next((rule for rule in self.rules if not rule.identity_hash), None)

    @property
    def can_have_rules(self) -> bool:
        """Return whether rules take effect: without rates, or with a rate of 0, the answer never changes."""
        return bool(self.throttle.rates) and self.throttle.counted_rates == list(self.throttle.rates)


@asking
def overview(
    throttles: Sequence[BaseThrottle], *, minutes: int, offenders: int, rules: int
) -> Flow[list[ThrottleFigures]]:
    """Return the figures of throttles: the last ``minutes``, and of each up to ``offenders`` and ``rules``.

    Two round trips for each connection. Raises RedisUnavailable.
    """

    def together(of_connection: Sequence[BaseThrottle]) -> Flow[dict[BaseThrottle, ThrottleFigures]]:
        flows = [read(throttle, minutes=minutes, offenders=offenders, rules=rules) for throttle in of_connection]
        figures = yield from gather(flows)
        return {each.throttle: each for each in figures}

    figures = yield from read_together(throttles, together)
    return [figures[throttle] for throttle in throttles]


def read(throttle: BaseThrottle, *, minutes: int, offenders: int, rules: int) -> Flow[ThrottleFigures]:
    """Read the figures of one throttle. See overview()."""
    parts: list[Flow[Any]] = [
        counters.read([throttle], minutes),
        _read_offenders(throttle, offenders),
        listed(throttle, rules),
        shadow_report.read(throttle),
    ]
    by_minute, (most, their_rules), (count, in_force), report = yield from gather(parts)
    return ThrottleFigures(throttle, by_minute[throttle], most, their_rules, in_force, count, report)


def _read_offenders(throttle: BaseThrottle, limit: int) -> Flow[tuple[list[Offender], list[Rule]]]:
    most = yield from most_refused.read(throttle, limit)
    hashes = [each.identity_hash for each in most]
    return most, (yield from of_identities(throttle, hashes)) if hashes else []
