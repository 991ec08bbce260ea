"""A look after workflows with the heartbeats, every 15 s or at once if many run: one supervisor looks at each."""

import logging
from time import monotonic

from redis_kit.core.errors import RedisFailure
from redis_kit.core.logs.rate_limit import LogRateLimit
from redis_kit.queues.store.workflows import calls, repair
from redis_kit.queues.worker.shared.logs import counted
from redis_kit.queues.worker.shared.reconnect import UNAVAILABLE
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue

logger = logging.getLogger("redis_kit.worker")
EVERY = 15.0  # seconds between two looks


class Caretaker:
    """Repairs workflows whose jobs are gone or were never added, and takes expired ones off the list of all."""

    def __init__(self) -> None:
        self._at = 0.0
        self._log_limit = LogRateLimit()

    def look(self, source: WorkerQueue) -> None:
        """Look after the workflows that are due for it. At most 20 of them.

        Three round trips every 15 s, and two or more for each of them.
        """
        if monotonic() < self._at:
            return
        self._at = monotonic() + EVERY
        try:
            many_expired = source.run_flow(repair.forget_expired())
            ids = source.run_flow(repair.taken())
        except UNAVAILABLE:
            raise
        except RedisFailure as error:
            self._complain("", error)
            return
        if many_expired or len(ids) == calls.CHECKED_WORKFLOWS:  # the next ones follow with the next heartbeat
            self._at = 0.0
        for id in ids:
            try:
                _log(source.run_flow(repair.repair(id)))
            except UNAVAILABLE:
                raise
            except (RedisFailure, ValueError) as error:
                self._complain(id, error)

    def _complain(self, id: str, error: Exception) -> None:
        if self._log_limit.allows(id):
            logger.error("Workflow %s can't be read: %s" if id else "Workflows can't be read%s: %s", id, error)


def _log(repaired: repair.Repaired) -> None:
    if repaired.added:
        logger.warning("Workflow %s: %s added again.", repaired.id, counted(repaired.added, "job"))
    for number, error in repaired.failed:
        logger.error("Workflow %s: step %d has failed: %s", repaired.id, number, error)
