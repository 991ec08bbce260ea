"""The duty of workflows: it repairs those whose jobs are gone or were never added, and forgets expired ones."""

import logging
from collections.abc import Callable
from time import monotonic
from typing import Any

from redis_kit.core.errors import AuthenticationFailed, RedisFailure, RedisUnavailable
from redis_kit.core.logs.rate_limit import LogRateLimit
from redis_kit.queues.features.workflows import calls, repair

logger = logging.getLogger("redis_kit.worker")
INTERVAL = 15.0  # seconds between two runs
SOON = 1.0  # seconds to the next run if there was more than one run can do


class Caretaker:
    """Looks after the workflows that are due for it, 20 in a run. ``run_flow`` makes its calls to the server.

    Three round trips every 15 s, and two or more for each workflow.
    """

    def __init__(self, run_flow: Callable[..., Any]) -> None:
        self.due = 0.0
        self._run_flow = run_flow
        self._log_limit = LogRateLimit()

    def run(self) -> None:
        """Look after some workflows, and forget some that have expired."""
        self.due = monotonic() + INTERVAL
        try:
            many_expired = self._run_flow(repair.forget_expired())
            ids = self._run_flow(repair.taken())
        except (RedisUnavailable, AuthenticationFailed):
            self.due = 0.0
            raise
        except RedisFailure as error:
            self._complain("", error)
            return
        if many_expired or len(ids) == calls.CHECKED_WORKFLOWS:
            self.due = monotonic() + SOON
        for id in ids:
            try:
                _log(self._run_flow(repair.repair(id)))
            except (RedisUnavailable, AuthenticationFailed):
                raise
            except (RedisFailure, ValueError) as error:
                self._complain(id, error)

    def _complain(self, id: str, error: Exception) -> None:
        if self._log_limit.allows(id):
            logger.error("Workflow %s can't be read: %s" if id else "Workflows can't be read%s: %s", id, error)


def _log(repaired: repair.Repaired) -> None:
    if repaired.added:
        jobs = "1 job" if repaired.added == 1 else f"{repaired.added} jobs"
        logger.warning("Workflow %s: %s added again.", repaired.id, jobs)
    for number, error in repaired.failed:
        logger.error("Workflow %s: step %d has failed: %s", repaired.id, number, error)
