"""Queues as text for a terminal."""

from collections.abc import Iterator, Mapping, Sequence

from redis_kit.core.terminal import aligned, clean, cut, duration
from redis_kit.queues.overview import Report

COLUMNS = ("QUEUE", "READY", "SCHEDULED", "RUNNING", "DEAD", "WAITS", "DONE/MIN", "FAILED/MIN", "LATE", "PAUSED")


def table(reports: Mapping[str, Report]) -> Iterator[str]:
    """Return a line for each queue, below a line of titles."""
    rows = [COLUMNS, *(_row(name, report) for name, report in reports.items())]
    return aligned(rows, right=range(1, len(COLUMNS) - 1))


def per_minute(counts: Sequence[int]) -> float:
    """Return the mean of all but the last minute, which is not over."""
    whole = counts[:-1]
    return sum(whole) / max(len(whole), 1)


def lateness(report: Report) -> float:
    """Return by how many seconds attempts began too late on average, those of this minute among them; 0 without any."""
    late = sum(begun * mean for begun, mean in zip(report.begun, report.lateness, strict=True))
    return late / max(1, sum(report.begun))


def _row(name: str, report: Report) -> tuple[str, ...]:
    counts = report.counts
    return (
        cut(clean(name)),
        *(f"{count:,}" for count in (counts.ready, counts.scheduled, counts.running, counts.dead)),
        "" if report.wait is None else duration(report.wait),
        f"{per_minute(report.done):,.1f}",
        f"{per_minute(report.failed):,.1f}",
        duration(lateness(report)) if any(report.begun) else "",
        _paused(report),
    )


def _paused(report: Report) -> str:
    if report.paused is None:
        return ""
    return "until resumed" if report.paused.ends_in is None else f"for {duration(report.paused.ends_in)}"
