"""The metrics of queues and workers."""

from collections.abc import Iterator, Sequence
from typing import Any

from redis_kit.core.flow import Flow
from redis_kit.core.gather import gather
from redis_kit.core.metrics.families import MINUTES, Metric, MetricSource, Sample, since_block
from redis_kit.queues.reports.stats import Errors, QueueStats, read_names, read_reports
from redis_kit.queues.reports.workers import HOUR, WorkerInfo, read_workers

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
STATES = ("working", "quiet", "stopping", "unresponsive", "dead", "damaged")


class QueueMetrics(MetricSource):
    """How queues and workers are doing."""

    metrics = (
        *(JOBS, WAIT, DONE, FAILED, BEGUN, LATE, LATEST, PAUSED, CLAIMING, UNKNOWN, LONGEST, DAMAGED, OMITTED),
        *(WORKERS, LOST, RUNNING, THREADS, MEMORY),
    )

    def read(self, using: str, limit: int) -> Flow[list[Sample]]:
        """Return the samples. Two round trips."""
        errors: Errors = {}
        names = yield from read_names()
        parts: list[Flow[Any]] = [
            read_reports(names, MINUTES, using, errors),
            read_workers(names, using, errors),
        ]
        stats, (workers, gone) = yield from gather(parts)
        reports = dict(list(stats.items())[:limit])
        samples = [sample for name, queue in reports.items() for sample in _queue(name, queue)]
        samples += [*_workers(workers, reports), LOST.sample(sum(worker.age < HOUR for worker in gone))]
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


def _workers(workers: Sequence[WorkerInfo], reports: dict[str, QueueStats]) -> Iterator[Sample]:
    states = [worker.state or "working" for worker in workers]
    for state in STATES:
        yield WORKERS.sample(states.count(state), state)
    yield RUNNING.sample(sum(worker.running for worker in workers))
    yield THREADS.sample(sum(worker.threads for worker in workers))
    yield MEMORY.sample(sum(worker.memory or 0 for worker in workers) * 2**20)
    ages = dict.fromkeys(reports, 0.0)
    for job in (job for worker in workers for job in worker.held):
        if job.queue in ages:
            ages[job.queue] = max(ages[job.queue], job.age or 0.0)
    for queue, age in ages.items():
        yield LONGEST.sample(age, queue)
