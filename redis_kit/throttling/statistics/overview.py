"""How many throttles stand at once, for the dashboard: each question goes to the server for all of them together."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from redis_kit.core import connections, flow
from redis_kit.core.flow import Flow
from redis_kit.core.gather import gather
from redis_kit.throttling.engine.demand import Report
from redis_kit.throttling.rules import storage
from redis_kit.throttling.rules.storage import Rule
from redis_kit.throttling.statistics import counters
from redis_kit.throttling.statistics.counters import Minute
from redis_kit.throttling.statistics.offenders import Offender, listing
from redis_kit.throttling.statistics.shadow_report import reading, reports
from redis_kit.throttling.throttles.throttle import Throttle


class Watched(NamedTuple):
    """What a throttle does: its calls by minute, whom it refuses most, its rules, and how many there are in all.

    ``report`` is that of shadow mode.
    """

    throttle: Throttle
    minutes: list[Minute]
    offenders: list[Offender]
    rules: list[Rule]
    held: int
    report: Report | None

    @property
    def override(self) -> Rule | None:
        """Return the rule for everybody."""
        return next((rule for rule in self.rules if not rule.who), None)

    @property
    def can_be_ruled(self) -> bool:
        """Tell whether it asks the server at all: with no rate, or with one of 0, its answer is always the same."""
        return bool(self.throttle.rates) and self.throttle.limited == list(self.throttle.rates)


def overview(throttles: Sequence[Throttle], *, minutes: int, offenders: int, rules: int) -> list[Watched]:
    """Return what each throttle did in the last minutes, with so many offenders and rules of each.

    Two round trips for each connection that they use. Raises RedisUnavailable.
    """
    found: dict[Throttle, Watched] = {}
    for using in dict.fromkeys(throttle.using for throttle in throttles):
        some = [throttle for throttle in throttles if throttle.using == using]
        steps = gather([_watched(throttle, minutes, offenders, rules) for throttle in some])
        found |= {one.throttle: one for one in flow.run(steps, connections.client(using))}
    return [found[throttle] for throttle in throttles]


def _watched(throttle: Throttle, minutes: int, offenders: int, rules: int) -> Flow[Watched]:
    parts: list[Flow[Any]] = [
        counters.read([throttle], minutes),
        listing(throttle, offenders),
        _rules(throttle, rules),
        _report(throttle),
    ]
    by_minute, most, (held, listed), report = yield from gather(parts)
    return Watched(throttle, by_minute[throttle], most, listed, held, report)


def _rules(throttle: Throttle, limit: int) -> Flow[tuple[int, list[Rule]]]:
    parts: list[Flow[Any]] = [flow.one(storage.index(throttle, 0)), storage.listed(throttle, limit)]
    (held, *_), found = yield from gather(parts)
    return held, found


def _report(throttle: Throttle) -> Flow[Report | None]:
    return (yield from reading(throttle)) if reports(throttle) else None
