"""The charts of queues: of all in the last minutes, and of one over a range of time that the viewer chooses."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from operator import mul
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from redis_kit.core.flow import Flow
from redis_kit.core.gather import gather
from redis_kit.core.panels import Bars, Ranges, Sparkline, StackedBars
from redis_kit.core.panels.ranges import Range, label
from redis_kit.core.text import grouped

if TYPE_CHECKING:
    from redis_kit.queues.monitoring.history import QueueHistory
    from redis_kit.queues.monitoring.report import QueueStats

MINUTES = 30  # in charts of all queues


def states(reports: Mapping[str, "QueueStats"]) -> Iterator[Bars]:
    """Yield how many jobs are in each state, if there are jobs."""
    counts = [report.counts for report in reports.values()]
    labels = (_("Scheduled"), _("Ready"), _("Running"), _("Dead"))
    numbers = [sum(same) for same in zip(*counts, strict=True)]
    if any(numbers):
        yield Bars(_("Jobs by state"), list(zip(labels, numbers, strict=True)))


def bars(reports: Mapping[str, "QueueStats"]) -> Iterator[Bars | StackedBars]:
    """Yield jobs done, attempts failed and how late attempts began, by minute, if there are queues."""
    if reports:
        all_stats = list(reports.values())
        minutes = [label(all_stats[0].minute - MINUTES + 1 + place, day=False) for place in range(MINUTES)]
        done = [float(sum(same)) for same in zip(*(stats.done for stats in all_stats), strict=True)]
        latest = [timedelta(seconds=max(same)) for same in zip(*(stats.latest for stats in all_stats), strict=True)]
        failed = [float(sum(same)) for same in zip(*(stats.failed for stats in all_stats), strict=True)]
        parts = [(_("Jobs done"), done), (_("Failed attempts"), failed)]
        yield StackedBars(_("Attempts that ended, per minute"), minutes, parts)
        yield Bars(_("How late attempts began, on average"), list(zip(minutes, _lateness(all_stats), strict=True)))
        yield Bars(_("How late attempts began, at most"), list(zip(minutes, latest, strict=True)))


def trend(reports: Mapping[str, "QueueStats"]) -> Sparkline | None:
    """Return the jobs done in each minute that was read; None without queues."""
    if not reports:
        return None
    done = [sum(same) for same in zip(*(stats.done for stats in reports.values()), strict=True)]
    ended = ngettext("%(count)s job done in an hour", "%(count)s jobs done in an hour", sum(done))
    return Sparkline(ended % {"count": grouped(sum(done))}, done)


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
    labels = chosen.labels(numbers.minute)
    done, failed, latest = (
        chosen.bars(each, numbers.minute) for each in (numbers.done, numbers.failed, numbers.latest)
    )
    yield chosen.choice("queues", {"queue": queue})
    parts = [(_("Jobs done"), list(map(sum, done))), (_("Failed attempts"), list(map(sum, failed)))]
    yield StackedBars(_("Attempts that ended"), labels, parts)
    late = [timedelta(seconds=max(bar)) for bar in latest]
    yield Bars(_("How late attempts began, at most"), list(zip(labels, late, strict=True)))


def _lateness(reports: Sequence["QueueStats"]) -> list[timedelta]:
    begun = [sum(same) for same in zip(*(report.begun for report in reports), strict=True)]
    late = [map(mul, report.begun, report.lateness) for report in reports]
    return [
        timedelta(seconds=sum(same) / max(1, count)) for same, count in zip(zip(*late, strict=True), begun, strict=True)
    ]
