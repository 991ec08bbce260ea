"""Counts the attempts of tasks in a worker process; adds up what a queue counts in its minutes, in a supervisor."""

import logging
from collections import defaultdict
from collections.abc import Sequence
from threading import Lock
from time import monotonic

from redis_kit.core.errors import CommandFailed, KeyConflict, RedisFailure
from redis_kit.core.flow import single
from redis_kit.core.logs.rate_limit import LogRateLimit
from redis_kit.core.steps import Batch, TolerantBatch
from redis_kit.queues.engine.calls import QueueScript
from redis_kit.queues.engine.feature import Process, ProcessPart
from redis_kit.queues.engine.job import Job
from redis_kit.queues.features.statistics import counts as run_counts
from redis_kit.queues.features.statistics.counts import HOURS, KEPT_HOURS
from redis_kit.queues.queue import Queue
from redis_kit.queues.worker.shared.failures import guarded

EVERY = 5.0  # seconds
MOST = 1000  # attempts in a list
MOST_TASKS = 100  # of a queue
FOLD_INTERVAL = 60.0  # seconds between two looks at past hours
SOON = 1.0  # seconds to the next look if hours are left
AT_ONCE = 12  # hours that one call adds up, of 71 at most
COUNT_RUNS, FOLD_HOURS = QueueScript("count_runs", __package__), QueueScript("fold_hours", __package__)
logger = logging.getLogger("redis_kit.worker")

ByTask = dict[str, defaultdict[int, float]]


class TaskStatistics(ProcessPart):
    """Counts lie here for up to five seconds, so the death of a process loses as much.

    Counts that the server did not take are sent again, unless it may have added them: nothing is counted twice.
    """

    def __init__(self, process: Process) -> None:
        self._sources, self._stopping = process.sources, process.stopping
        self._lock = Lock()
        self._counts: dict[int, ByTask] = {}  # by the number of the queue
        self._attempts: list[tuple[int, str, float, float, float, bool]] = []  # that were not added up yet
        self._log_limit = LogRateLimit()

    def note(self, number: int, task: str, run_time: float, job: Job, *, failed: bool) -> None:
        """Count an attempt of a job of this queue, which took this time in seconds."""
        self._attempts.append((number, task, run_time, job.due, job.claimed, failed))
        if len(self._attempts) >= MOST:
            self._add_up()

    def _add_up(self) -> None:
        with self._lock:
            attempts, self._attempts = self._attempts, []
            for number, task, run_time, due, claimed, failed in attempts:
                wait = max(0.0, claimed - due) if due else 0.0
                run_counts.add(self._counts_of(number, task), run_time, wait, failed=failed)

    def _counts_of(self, number: int, task: str) -> defaultdict[int, float]:
        return self._counts.setdefault(number, {}).setdefault(task, defaultdict(float))

    def run(self) -> None:
        """Send what was counted every five seconds, until the worker stops."""
        while not self._stopping.wait(EVERY):
            guarded("The statistics of tasks", self.flush, None)

    def flush(self) -> None:
        """Send what was counted since the last call. One round trip, on a Cluster one for each node, or none."""
        self._add_up()
        with self._lock:
            counts, self._counts = self._counts, {}
        if not counts:
            return
        steps = [
            COUNT_RUNS(
                self._sources[number].key(""),
                HOURS,
                MOST_TASKS,
                *(part for task, sums in by_task.items() for part in (task, run_counts.dumps(sums))),
            )
            for number, by_task in counts.items()
        ]
        try:
            replies = self._sources[0].run_flow(single(TolerantBatch(steps)))
        except RedisFailure as error:
            replies = [error] * len(steps)
        for (number, by_task), reply in zip(counts.items(), replies, strict=True):
            if isinstance(reply, Exception):
                self._keep(number, by_task, reply)

    def _keep(self, number: int, by_task: ByTask, error: Exception) -> None:
        """Send counts again later, if that may succeed and counts nothing twice."""
        is_final = not isinstance(error, RedisFailure) or isinstance(error, (CommandFailed, KeyConflict))
        if is_final or getattr(error, "indeterminate", False):
            text = "Counts for the statistics of tasks were dropped: %s"
            self._log_limit.log(logger.warning, "dropped", text, error)
            return
        with self._lock:
            for task, more in by_task.items():
                sums = self._counts_of(number, task)
                for what, count in more.items():
                    sums[what] += count


class HourFolding:
    """Adds up what queues counted in the minutes of past hours. One round trip each minute."""

    def __init__(self, queues: Sequence[Queue]) -> None:
        self.due = monotonic() + FOLD_INTERVAL
        self._queues = queues

    def run(self) -> None:
        """Add up some past hours of each queue."""
        steps = [FOLD_HOURS(queue.key(""), AT_ONCE, KEPT_HOURS) for queue in self._queues]
        replies = self._queues[0].run_flow(single(Batch(steps, lenient=True)))
        is_left = any(reply for reply in replies if not isinstance(reply, RedisFailure))
        self.due = monotonic() + (SOON if is_left else FOLD_INTERVAL)
