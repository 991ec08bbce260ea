"""The throttles on the dashboard."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from redis_kit.core.panels import MOST_ROWS, Bars, Content, Figure, Panel, Table

if TYPE_CHECKING:
    from redis_kit.throttling.counters import Minute
    from redis_kit.throttling.throttles import Throttle

SHOWN = 30  # minutes


class ThrottlesPanel(Panel):
    """What the throttles of this site's code let pass and refused."""

    slug = "throttles"
    title = _("Throttles")

    def content(self) -> Iterator[Content]:
        """Return the calls of the last half hour, of all throttles and of each."""
        from redis_kit.throttling.counters import recent  # here, so that start-up does not load the client library
        from redis_kit.throttling.throttles import registered

        throttles = registered()[:MOST_ROWS]
        counts = recent(throttles, minutes=SHOWN)
        every = [_sum(same) for same in zip(*counts.values(), strict=True)]
        refused = sum(minute.refused for minute in every)
        yield Figure(_("Throttles"), len(throttles))
        yield Figure(_("Allowed"), sum(minute.allowed for minute in every), _("in 30 minutes"))
        yield Figure(_("Refused"), refused, _("in 30 minutes"))
        yield Bars(_("Allowed per minute"), [(_clock(minute), minute.allowed) for minute in every])
        yield Bars(_("Refused per minute"), [(_clock(minute), minute.refused) for minute in every])
        columns = (_("Throttle"), _("Rates"), _("Strategy"), _("Allowed per minute"), _("Refused per minute"))
        yield Table(
            _("Throttles"),
            columns,
            [_row(throttle, counts[throttle.name]) for throttle in throttles],
            _("No throttle has been built in this process."),
        )


def _row(throttle: "Throttle", minutes: list["Minute"]) -> tuple[object, ...]:
    rates = "; ".join(map(str, throttle.rates)) or _("no limit")
    allowed = sum(minute.allowed for minute in minutes) / len(minutes)
    refused = sum(minute.refused for minute in minutes) / len(minutes)
    return throttle.name, rates, throttle.strategy, round(allowed, 1), round(refused, 1)


def _sum(same: tuple["Minute", ...]) -> "Minute":
    return same[0]._replace(
        allowed=sum(minute.allowed for minute in same), refused=sum(minute.refused for minute in same)
    )


def _clock(minute: "Minute") -> str:
    return timezone.localtime(minute.start).strftime("%H:%M")
