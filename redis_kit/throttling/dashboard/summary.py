"""The tile of throttles on the dashboard's overview."""

from collections.abc import Mapping, Sequence

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from redis_kit.core.flow import Flow
from redis_kit.core.panels import Figure, Sparkline, Tile
from redis_kit.core.text import grouped
from redis_kit.throttling.dashboard.tables import true_calls
from redis_kit.throttling.engine.base import BaseThrottle
from redis_kit.throttling.statistics import counters
from redis_kit.throttling.statistics.counters import ThrottleCalls

HOUR = 60  # minutes
Calls = dict[BaseThrottle, list[ThrottleCalls]]


def reads(throttles: Sequence[BaseThrottle]) -> dict[str, Flow[Calls]]:
    """Return the flows that read the last hour, by connection. One round trip each."""
    by_connection = counters.by_connection(throttles)
    return {using: counters.read(several, HOUR) for using, several in by_connection.items()}


def tile(replies: Mapping[str, Calls]) -> Tile:
    """Return the tile of all throttles, from the results of the flows."""
    throttles = [true_calls(*each) for calls in replies.values() for each in calls.items()]
    allowed = sum(minute.allowed for minutes in throttles for minute in minutes)
    refused = [sum(minute.refused for minute in same) for same in zip(*throttles, strict=True)]
    text = ngettext("%(count)s call refused in an hour", "%(count)s calls refused in an hour", sum(refused))
    figures = [Figure(_("Allowed in an hour"), allowed), Figure(_("Refused in an hour"), sum(refused))]
    return Tile(figures, Sparkline(text % {"count": grouped(sum(refused))}, refused) if throttles else None)
