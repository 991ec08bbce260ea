"""Queues as text for a terminal."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from redis_kit.queues.overview import Report

WIDEST = 60  # characters of a column
COLUMNS = ("QUEUE", "READY", "SCHEDULED", "RUNNING", "DEAD", "WAITS", "DONE/MIN", "FAILED/MIN", "PAUSED")


def table(reports: Mapping[str, Report]) -> Iterator[str]:
    """Yield a line for each queue, below a line of titles."""
    rows = [COLUMNS, *(_row(name, report) for name, report in reports.items())]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(_cells(row, widths)).rstrip()


def per_minute(counts: Sequence[int]) -> float:
    """Return the mean of all but the last minute, which is not over."""
    whole = counts[:-1]
    return sum(whole) / max(len(whole), 1)


def clean(text: str) -> str:
    """Return text as it may be shown: it may come from anybody, and terminals obey some characters."""
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def duration(seconds: float) -> str:
    """Return seconds in words: ``41.2 s``, ``3 min 20 s``, ``5 h 12 min``."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60:,} h {minutes % 60} min"


def _row(name: str, report: Report) -> tuple[str, ...]:
    counts, shown = report.counts, clean(name)
    return (
        shown if len(shown) <= WIDEST else f"{shown[: WIDEST - 1]}…",
        *(f"{count:,}" for count in (counts.ready, counts.scheduled, counts.running, counts.dead)),
        "" if report.wait is None else duration(report.wait),
        f"{per_minute(report.done):,.1f}",
        f"{per_minute(report.failed):,.1f}",
        _paused(report),
    )


def _paused(report: Report) -> str:
    if report.paused is None:
        return ""
    return "until resumed" if report.paused.ends_in is None else f"for {duration(report.paused.ends_in)}"


def _cells(row: Iterable[str], widths: Sequence[int]) -> Iterator[str]:
    for place, (cell, width) in enumerate(zip(row, widths, strict=True)):
        yield cell.rjust(width) if 0 < place < len(COLUMNS) - 1 else cell.ljust(width)
