"""One throttle over a range of time that the viewer chooses."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext_lazy as _

from redis_kit.core.flow import Flow
from redis_kit.core.gather import gather
from redis_kit.core.panels import Figure, Range, Ranges, StackedBars

if TYPE_CHECKING:
    from redis_kit.throttling.engine.base import BaseThrottle
    from redis_kit.throttling.statistics.counters import ThrottleCalls
    from redis_kit.throttling.statistics.overview import ThrottleFigures


def read(throttle: "BaseThrottle", chosen: Range, **limits: int) -> "tuple[ThrottleFigures, Sequence[ThrottleCalls]]":
    """Return the figures of a throttle, for which overview() explains the limits, and its calls. Two round trips."""
    from redis_kit.throttling.statistics import overview

    parts: list[Flow[Any]] = [overview.read(throttle, **limits), _read_calls(throttle, chosen)]
    figures, calls = throttle.run_flow(gather(parts))
    return figures, calls


def _read_calls(throttle: "BaseThrottle", chosen: Range) -> "Flow[Sequence[ThrottleCalls]]":
    from redis_kit.throttling.statistics import counters, history

    if chosen.by_hour:
        return (yield from history.read(throttle, chosen.hours))
    return (yield from counters.read([throttle], chosen.minutes))[throttle]


def figures(of_throttle: "ThrottleFigures", calls: "Sequence[ThrottleCalls]", chosen: Range) -> Iterator[Figure]:
    """Yield the calls in the range, and the number of rules."""
    yield Figure(_("Allowed"), sum(each.allowed for each in calls), chosen.label)
    yield Figure(_refused(of_throttle), sum(each.refused for each in calls), chosen.label)
    yield Figure(_("Rules in force"), of_throttle.rule_count)


def chart(
    of_throttle: "ThrottleFigures", calls: "Sequence[ThrottleCalls]", chosen: Range, asked: Mapping[str, str]
) -> Iterator[Ranges | StackedBars]:
    """Yield the choice of a range, and the calls in it. ``asked`` is the search for the throttle."""
    yield chosen.choice("throttles", asked)
    last = chosen.last_minute(calls[-1].start)
    allowed = [sum(bar) for bar in chosen.bars([each.allowed for each in calls], last)]
    refused = [sum(bar) for bar in chosen.bars([each.refused for each in calls], last)]
    parts = [(_("Allowed"), allowed), (_refused(of_throttle), refused)]
    yield StackedBars(_("Calls"), chosen.labels(last), parts)


def _refused(of_throttle: "ThrottleFigures") -> Any:
    return _("Would be refused") if of_throttle.throttle.shadow else _("Refused")
