"""The metrics of queues and workers."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Any

from redis_kit.core.flow import Flow
from redis_kit.core.gather import gather
from redis_kit.core.metrics.families import (
    MINUTES,
    Histogram,
    Metric,
    MetricSource,
    Sample,
    seen_to_restart,
    since_block,
)
from redis_kit.queues.engine import run_counts
from redis_kit.queues.engine.run_counts import TaskStats
from redis_kit.queues.reports import task_runs
from redis_kit.queues.reports.stats import Errors, QueueStats, read_names, read_reports
from redis_kit.queues.reports.task_runs import ByTask
from redis_kit.queues.reports.workers import HOUR, WorkerInfo, read_lost, read_workers

QUEUE = ("queue",)
JOBS = Metric(
    "redis_kit_queue_jobs",
    "gauge",
    "Jobs in a queue, by state; running are those that workers have claimed.",
    ("queue", "state"),
)
WAIT = Metric("redis_kit_queue_wait_seconds", "gauge", "Seconds for which the next job has been due.", QUEUE)
DONE = Metric("redis_kit_queue_jobs_done_total", "counter", "Jobs that ended.", QUEUE)
FAILED = Metric("redis_kit_queue_attempts_failed_total", "counter", "Attempts that failed.", QUEUE)
BEGUN = Metric("redis_kit_queue_attempts_begun_total", "counter", "Attempts that began.", QUEUE)
LATE = Metric(
    "redis_kit_queue_lateness_seconds_total", "counter", "Seconds by which attempts began late, added up.", QUEUE
)
LATEST = Metric(
    "redis_kit_queue_lateness_max_seconds",
    "gauge",
    "The most seconds by which an attempt began late, in this minute and the one before.",
    QUEUE,
)
PAUSED = Metric("redis_kit_queue_paused", "gauge", "Whether a queue is paused.", QUEUE)
CLAIMING = Metric("redis_kit_queue_workers", "gauge", "Living workers that claim jobs of a queue.", QUEUE)
UNKNOWN = Metric("redis_kit_queue_unknown_jobs", "gauge", "Jobs that no living worker can run.", QUEUE)
RUN_TIME = Metric(
    "redis_kit_task_run_seconds",
    "histogram",
    "Seconds that attempts of a task took, failed ones among them.",
    ("queue", "task"),
)
TASK_FAILED = Metric(
    "redis_kit_task_attempts_failed_total", "counter", "Attempts of a task that failed.", ("queue", "task")
)
LONGEST = Metric(
    "redis_kit_queue_running_max_seconds", "gauge", "Seconds for which the oldest of the running jobs has run.", QUEUE
)
DAMAGED = Metric("redis_kit_queues_damaged", "gauge", "Queues that can't be read, as a key has another type.")
OMITTED = Metric("redis_kit_queues_omitted", "gauge", "Queues beyond the limit, whose metrics are left out.")
WORKERS = Metric("redis_kit_workers", "gauge", "Worker processes, by state.", ("state",))
LOST = Metric("redis_kit_workers_lost", "gauge", "Workers that ended without signing off in the last hour.")
RUNNING = Metric("redis_kit_workers_running_jobs", "gauge", "Running jobs of all workers.")
THREADS = Metric("redis_kit_workers_threads", "gauge", "Threads of all workers: the jobs that can run at once.")
MEMORY = Metric("redis_kit_workers_memory_bytes", "gauge", "Resident memory of all workers.")
BOUNDS = [4**power / 1000 for power in range(11)]  # seconds: 1 ms to 17 minutes, each at the end of a class
NO_RUNS = run_counts.stats(Counter())
STATES = ("working", "quiet", "stopping", "unresponsive", "dead", "damaged")


class QueueMetrics(MetricSource):
    """How queues and workers are doing."""

    metrics = (
        *(JOBS, WAIT, DONE, FAILED, BEGUN, LATE, LATEST, PAUSED, CLAIMING, UNKNOWN, LONGEST, DAMAGED, OMITTED),
        *(WORKERS, LOST, RUNNING, THREADS, MEMORY, RUN_TIME, TASK_FAILED),
    )

    def read(self, using: str, limit: int) -> Flow[list[Sample]]:
        """Return the samples. Two round trips."""
        errors: Errors = {}
        names = yield from read_names()
        parts: list[Flow[Any]] = [
            read_reports(names, MINUTES, using, errors),
            read_workers(names, using, errors),
            read_lost(names, using),
            task_runs.latest_hours(names, using),
        ]
        stats, workers, gone, (present, before) = yield from gather(parts, combine=True)
        reports = dict(list(stats.items())[:limit])
        samples = [sample for name, queue in reports.items() for sample in _queue(name, queue)]
        samples += [*_workers(workers, reports), LOST.sample(sum(worker.age < HOUR for worker in gone))]
        samples += _tasks(present, before, reports, limit)
        return [*samples, DAMAGED.sample(len(errors)), OMITTED.sample(len(stats) - len(reports))]


def _queue(name: str, stats: QueueStats) -> Iterator[Sample]:
    for state, count in stats.counts._asdict().items():
        yield JOBS.sample(count, name, state)
    yield WAIT.sample(stats.wait or 0, name)
    for metric, counts in ((DONE, stats.done), (FAILED, stats.failed), (BEGUN, stats.begun)):
        yield metric.sample(since_block(stats.minute, counts), name)
    late = [mean * count for mean, count in zip(stats.lateness, stats.begun, strict=True)]
    yield LATE.sample(since_block(stats.minute, late), name)
    yield LATEST.sample(max(stats.latest[-2:]), name)
    yield PAUSED.sample(stats.paused is not None, name)
    yield CLAIMING.sample(max(stats.claiming, 0), name)
    yield UNKNOWN.sample(sum(calls.jobs for calls in stats.unknown if not calls.known), name)


def _tasks(present: ByTask, before: ByTask, reports: Mapping[str, QueueStats], limit: int) -> Iterator[Sample]:
    """Yield the samples of tasks; those that took the most time if there are more of them than ``limit``."""
    listed = [key for key in present if key[0] in reports]
    for key in sorted(listed, key=lambda key: -(present[key].total + before[key].total))[:limit]:
        minute, stats = reports[key[0]].minute, present[key]
        histogram = _histogram(stats if seen_to_restart(minute, stats.runs, before[key].runs) else NO_RUNS)
        yield RUN_TIME.sample(histogram, *key)
        yield TASK_FAILED.sample(seen_to_restart(minute, stats.failures, before[key].failures), *key)


def _histogram(stats: TaskStats) -> Histogram:
    counts = [(end, sum(stats.classes[: run_counts.class_of(end) + 1])) for end in BOUNDS]
    return Histogram((*counts, (inf, stats.runs)), stats.total)


def _workers(workers: Sequence[WorkerInfo], reports: dict[str, QueueStats]) -> Iterator[Sample]:
    states = [worker.state or "working" for worker in workers]
    for state in STATES:
        yield WORKERS.sample(states.count(state), state)
    yield RUNNING.sample(sum(len(worker.jobs) for worker in workers))
    yield THREADS.sample(sum(worker.threads for worker in workers))
    yield MEMORY.sample(sum(worker.memory or 0 for worker in workers) * 2**20)
    ages = dict.fromkeys(reports, 0.0)
    for job in (job for worker in workers for job in worker.held):
        if job.queue in ages:
            ages[job.queue] = max(ages[job.queue], job.age or 0.0)
    for queue, age in ages.items():
        yield LONGEST.sample(age, queue)
