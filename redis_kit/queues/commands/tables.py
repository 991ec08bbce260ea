"""Tables of queues for a terminal."""

import time
from collections.abc import Iterator, Mapping, Sequence

from redis_kit.core.terminal import aligned, cut, duration, estimate
from redis_kit.core.text import clean
from redis_kit.queues.inspection.stats import QueueStats
from redis_kit.queues.jobs.done import DoneJob
from redis_kit.queues.jobs.job import JobInfo, cause
from redis_kit.queues.jobs.run_counts import TaskStats

JOB_COLUMNS = ("QUEUE", "ID", "TASK", "STATE", "AGE", "ATTEMPTS", "WORKER", "ERROR")
DONE_COLUMNS = ("QUEUE", "ID", "TASK", "ENDED", "RAN", "WAITED", "ATTEMPTS", "WORKER")
TASK_COLUMNS = (
    *("QUEUE", "TASK", "ATTEMPTS", "FAILED", "IN ALL"),
    *("RUN P50", "P95", "P99", "WAIT P50", "P95", "P99"),
)
COLUMNS = (
    *("QUEUE", "READY", "SCHEDULED", "RUNNING", "DEAD", "WAITS"),
    *("DONE/MIN", "FAILED/MIN", "LATE", "WORKERS", "PAUSED"),
)


def table(reports: Mapping[str, QueueStats]) -> Iterator[str]:
    """Return a header line and a line for each queue."""
    rows = [COLUMNS, *(_row(name, report) for name, report in reports.items())]
    return aligned(rows, right=range(1, len(COLUMNS) - 1))


def job_table(jobs: Sequence[tuple[str, JobInfo]]) -> Iterator[str]:
    """Return a header line and a line for each job, given with its queue."""
    return aligned([JOB_COLUMNS, *(_job_row(queue, info) for queue, info in jobs)], right=(5,))


def done_table(jobs: Sequence[tuple[str, DoneJob]]) -> Iterator[str]:
    """Return a header line and a line for each done job, given with its queue."""
    return aligned([DONE_COLUMNS, *(_done_row(queue, info) for queue, info in jobs)], right=(4, 5, 6))


def task_table(tasks: Sequence[tuple[str, str, TaskStats]]) -> Iterator[str]:
    """Return a header line and a line for each task, given with its queue and its name."""
    return aligned([TASK_COLUMNS, *(_task_row(*task) for task in tasks)], right=range(2, len(TASK_COLUMNS)))


def age(info: JobInfo) -> float | None:
    """Return for how many seconds a job waits, runs or is dead, negative until it is due; None if that is not known."""
    since = {"running": info.begun, "dead": info.died}.get(info.state, info.due)
    return time.time() - since if since else None  # the clocks of this machine and the server may differ


def error_of(info: JobInfo) -> str:
    """Return the name of a dead job's error; if it killed its processes the whole reason, which has no data."""
    name = cause(info).error
    return info.reason if name == "poison" else name


def per_minute(counts: Sequence[int], minute: int) -> float:
    """Return the mean per minute. The last one, ``minute``, is the current one and counts as far as it has passed."""
    # The clocks of this machine and the server may differ; the error is less than a minute.
    over = min(1.0, max(0.0, time.time() / 60 - minute))
    return sum(counts) / max(1.0, len(counts) - 1 + over)


def lateness(report: QueueStats) -> float:
    """Return by how many seconds attempts began too late on average; 0 without attempts."""
    late = sum(begun * mean for begun, mean in zip(report.begun, report.lateness, strict=True))
    return late / max(1, sum(report.begun))


def _row(name: str, report: QueueStats) -> tuple[str, ...]:
    counts = report.counts
    return (
        cut(clean(name)),
        *(f"{count:,}" for count in (counts.ready, counts.scheduled, counts.running, counts.dead)),
        "" if report.wait is None else duration(report.wait),
        f"{per_minute(report.done, report.minute):,.1f}",
        f"{per_minute(report.failed, report.minute):,.1f}",
        duration(lateness(report)) if any(report.begun) else "",
        _workers(report),
        _paused(report),
    )


def _job_row(queue: str, info: JobInfo) -> tuple[str, ...]:
    task, error = cause(info).task, clean(error_of(info))
    if info.state == "ready" and info.reason:
        error = f"waits for {info.reason}"
    seconds = age(info)
    age_text = "" if seconds is None else duration(seconds) if seconds >= 0 else f"in {duration(-seconds)}"
    attempts = f"{info.attempts:,}"
    return cut(clean(queue)), info.id, cut(clean(task)), info.state, age_text, attempts, info.worker or "", cut(error)


def _done_row(queue: str, info: DoneJob) -> tuple[str, ...]:
    ago = f"{duration(max(0.0, time.time() - info.ended))} ago"
    ran = "" if info.run_time is None else duration(info.run_time)
    names = cut(clean(queue)), clean(info.id), cut(clean(info.task))
    return *names, ago, ran, duration(info.wait), f"{info.attempts:,}", clean(info.worker)


def _task_row(queue: str, task: str, stats: TaskStats) -> tuple[str, ...]:
    times = ["" if each is None else estimate(each) for each in (*stats.run_time, *stats.wait)]
    counts = f"{stats.runs:,}", f"{stats.failures:,}", duration(stats.total)
    return cut(clean(queue)), cut(clean(task)) or "(others)", *counts, *times


def _workers(report: QueueStats) -> str:
    quiet = f"{report.quiet:,} quiet" if report.quiet else ""
    if report.deserted:
        return f"none! ({quiet})" if quiet else "none!"
    return f"{report.claiming:,} ({quiet})" if quiet else f"{report.claiming:,}"


def _paused(report: QueueStats) -> str:
    if report.paused is None:
        return ""
    return "until resumed" if report.paused.ends_in is None else f"for {duration(report.paused.ends_in)}"
