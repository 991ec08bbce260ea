"""The charts of one queue over a range of time that the viewer chooses."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from redis_kit.core.panels import Bars, Ranges, StackedBars

if TYPE_CHECKING:
    from redis_kit.queues.monitoring.report import QueueStats

RANGES = ((_("1 hour"), 1), (_("24 hours"), 24), (_("72 hours"), 72))
BAR = {1: 1, 24: 30, 72: 60}  # minutes of one bar, by the hours of the range


def hours(asked: str) -> int:
    """Return the hours of the range that a viewer asks for; one hour unless it is a known range."""
    return int(asked) if asked in map(str, BAR) else 1


def charts(queue: str, stats: "QueueStats", chosen: int) -> Iterator[Ranges | StackedBars | Bars]:
    """Yield the choice of a range, jobs done and failed attempts in it, and how late attempts began."""
    starts = range(0, chosen * 60, BAR[chosen])
    labels = [_label(stats.minute - chosen * 60 + 1 + start, chosen) for start in starts]
    done, failed, latest = (_bars(numbers, BAR[chosen]) for numbers in (stats.done, stats.failed, stats.latest))
    yield Ranges("queues", RANGES, chosen, {"queue": queue})
    parts = [(_("Jobs done"), list(map(sum, done))), (_("Failed attempts"), list(map(sum, failed)))]
    yield StackedBars(_("Attempts that ended"), labels, parts)
    late = list(zip(labels, map(max, latest), strict=True))
    yield Bars(_("How late attempts began, at most (s)"), late)


def _bars(numbers: Sequence[float], size: int) -> list[Sequence[float]]:
    return [numbers[at : at + size] for at in range(0, len(numbers), size)]


def _label(minute: int, chosen: int) -> str:
    local = timezone.localtime(datetime.fromtimestamp(minute * 60, UTC))
    return local.strftime("%H:%M" if chosen == 1 else "%m-%d %H:%M")
