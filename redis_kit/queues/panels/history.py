"""The charts of queues: of all in the last minutes, and of one over a range of time that the viewer chooses."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from operator import mul
from typing import TYPE_CHECKING, Any, NamedTuple

from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from redis_kit.core.flow import Flow
from redis_kit.core.gather import gather
from redis_kit.core.panels import Bars, DonutChart, Ranges, Sparkline, StackedBars

if TYPE_CHECKING:
    from redis_kit.queues.monitoring.history import QueueHistory
    from redis_kit.queues.monitoring.report import QueueStats

MINUTES = 30  # in charts of all queues


class Range(NamedTuple):
    """A range of time: its label, its minutes, those of one bar, and whether the numbers are read by hour."""

    label: Any
    minutes: int
    bar: int
    by_hour: bool = True

    @property
    def hours(self) -> int:
        """Return its length in hours."""
        return self.minutes // 60


RANGES = {
    1: Range(_("1 hour"), 60, 1, by_hour=False),
    24: Range(_("24 hours"), 24 * 60, 30, by_hour=False),
    72: Range(_("72 hours"), 72 * 60, 60),
    168: Range(_("7 days"), 168 * 60, 120),
    720: Range(_("30 days"), 720 * 60, 8 * 60),
    2160: Range(_("90 days"), 2160 * 60, 24 * 60),
}


def range_of(asked: str) -> Range:
    """Return the range that a viewer asks for; one hour unless it is a known one."""
    return RANGES[int(asked) if asked in map(str, RANGES) else 1]


def states(reports: Mapping[str, "QueueStats"]) -> Iterator[DonutChart]:
    """Yield how many jobs are in each state, if there are jobs."""
    counts = [report.counts for report in reports.values()]
    labels = (_("Scheduled"), _("Ready"), _("Running"), _("Dead"))
    numbers = [sum(same) for same in zip(*counts, strict=True)]
    if any(numbers):
        yield DonutChart(_("Jobs by state"), list(zip(labels, numbers, strict=True)), alarm=labels[-1])


def bars(reports: Mapping[str, "QueueStats"]) -> Iterator[Bars | StackedBars]:
    """Yield jobs done, attempts failed and how late attempts began, by minute, if there are queues."""
    if reports:
        all_stats = list(reports.values())
        minutes = [label(all_stats[0].minute - MINUTES + 1 + place, day=False) for place in range(MINUTES)]
        done = [float(sum(same)) for same in zip(*(stats.done for stats in all_stats), strict=True)]
        latest = [max(same) for same in zip(*(stats.latest for stats in all_stats), strict=True)]
        failed = [float(sum(same)) for same in zip(*(stats.failed for stats in all_stats), strict=True)]
        parts = [(_("Jobs done"), done), (_("Failed attempts"), failed)]
        yield StackedBars(_("Attempts that ended, per minute"), minutes, parts)
        yield Bars(_("How late attempts began, on average (s)"), list(zip(minutes, _lateness(all_stats), strict=True)))
        yield Bars(_("How late attempts began, at most (s)"), list(zip(minutes, latest, strict=True)))


def trend(reports: Mapping[str, "QueueStats"]) -> Sparkline | None:
    """Return the jobs done in each minute that was read; None without queues."""
    if not reports:
        return None
    done = [sum(same) for same in zip(*(stats.done for stats in reports.values()), strict=True)]
    ended = ngettext("%(count)d job done in an hour", "%(count)d jobs done in an hour", sum(done))
    return Sparkline(ended % {"count": sum(done)}, done)


def read(queue: str, chosen: Range) -> "tuple[QueueStats, QueueStats | QueueHistory]":
    """Return how a queue is doing, and its numbers in a range. One round trip, two if the settings name SHARDS."""
    from redis_kit.queues.monitoring import stats
    from redis_kit.queues.monitoring.history import read_history
    from redis_kit.queues.queue import Queue

    if not chosen.by_hour:
        report = stats.queue_stats([queue], minutes=chosen.minutes)[queue]
        return report, report
    both: list[Flow[Any]] = [stats.read_reports([queue], 1, "default"), read_history(queue, chosen.hours, "default")]
    reports, numbers = Queue(queue).run_flow(gather(both))
    return reports[queue], numbers


def charts(queue: str, numbers: "QueueStats | QueueHistory", chosen: Range) -> Iterator[Ranges | StackedBars | Bars]:
    """Yield the choice of a range, jobs done and failed attempts in it, and how late attempts began."""
    size = chosen.bar // 60 if chosen.by_hour else chosen.bar
    end = numbers.minute + 1
    labels = [label(start, day=chosen.hours > 1) for start in range(end - chosen.minutes, end, chosen.bar)]
    done, failed, latest = (_bars(each, size) for each in (numbers.done, numbers.failed, numbers.latest))
    choices = [(each.label, each.hours) for each in RANGES.values()]
    yield Ranges("queues", choices, chosen.hours, {"queue": queue})
    parts = [(_("Jobs done"), list(map(sum, done))), (_("Failed attempts"), list(map(sum, failed)))]
    yield StackedBars(_("Attempts that ended"), labels, parts)
    late = list(zip(labels, map(max, latest), strict=True))
    yield Bars(_("How late attempts began, at most (s)"), late)


def _bars(numbers: Sequence[float], size: int) -> list[Sequence[float]]:
    return [numbers[at : at + size] for at in range(0, len(numbers), size)]


def label(minute: int, *, day: bool) -> str:
    """Return the label of a minute, counted since 1970: its time, and its day if wanted."""
    local = timezone.localtime(datetime.fromtimestamp(minute * 60, UTC))
    return local.strftime("%m-%d %H:%M" if day else "%H:%M")


def _lateness(reports: Sequence["QueueStats"]) -> list[float]:
    begun = [sum(same) for same in zip(*(report.begun for report in reports), strict=True)]
    late = [map(mul, report.begun, report.lateness) for report in reports]
    return [sum(same) / max(1, count) for same, count in zip(zip(*late, strict=True), begun, strict=True)]
