"""Gathers the lines that jobs log in a worker process, and sends them every second."""

import logging
from collections import deque
from threading import Lock

from redis_kit.core.errors import RedisFailure
from redis_kit.core.flow import single
from redis_kit.core.logs.rate_limit import LogRateLimit
from redis_kit.core.steps import Batch
from redis_kit.core.values.sequences import batched
from redis_kit.queues.engine.calls import QueueScript
from redis_kit.queues.engine.feature import Process, ProcessPart
from redis_kit.queues.worker.shared.failures import guarded

EVERY = 1.0  # seconds
AT_ONCE = 100  # jobs in one round trip
STORE_LOG = QueueScript("store_log", __package__)
logger = logging.getLogger("redis_kit.worker")
JobKey = tuple[int, str]  # the number of the queue, and the id


class JobLogs(ProcessPart):
    """Lines wait here for up to a second, so the death of a process loses as much. They wait for no outage to end."""

    def __init__(self, process: Process) -> None:
        self._sources, self._stopping = process.sources, process.stopping
        self._lock = Lock()
        self._unsent: dict[tuple[JobKey, int, int], deque[bytes]] = {}  # also by how many are kept, and for how long
        self._log_limit = LogRateLimit()

    def add(self, job: JobKey, line: bytes, most: int, ttl_ms: int) -> None:
        """Take a line of a job, of which the latest ``most`` are kept for ``ttl_ms``."""
        with self._lock:
            self._unsent.setdefault((job, most, ttl_ms), deque(maxlen=most)).append(line)

    def run(self) -> None:
        """Send lines every second, until the worker stops."""
        while not self._stopping.wait(EVERY):
            guarded("The logs of jobs", self.flush, None)

    def flush(self) -> None:
        """Send what was logged since the last call. One round trip for 100 jobs, on a Cluster one for each node."""
        with self._lock:
            waiting, self._unsent = self._unsent, {}
        for some in batched(waiting.items(), AT_ONCE):
            steps = [
                STORE_LOG(self._sources[number].key(""), most, ttl_ms, *lines, job=id)
                for ((number, id), most, ttl_ms), lines in some
            ]
            try:
                replies = self._sources[0].run_flow(single(Batch(steps, lenient=True)))
                failure = next((reply for reply in replies if isinstance(reply, RedisFailure)), None)
            except RedisFailure as error:
                failure = error
            if failure:
                self._log_limit.log(logger.warning, "dropped", "Lines for the logs of jobs were dropped: %s", failure)
