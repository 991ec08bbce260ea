"""Attempts of jobs that run at most once: the server notes that one begins before its task is called."""

import logging
from operator import attrgetter
from typing import Any

from redis_kit.core.flow import single
from redis_kit.queues.engine.calls import QueueScript, claim_of
from redis_kit.queues.errors import GiveUp, Interrupted, Snooze, WorkerLost
from redis_kit.queues.worker.run.attempt import Attempt, Failed, Middleware
from redis_kit.queues.worker.run.endings import Departure
from redis_kit.queues.worker.shared.failures import until_answered

logger = logging.getLogger("redis_kit.worker")
BEGUN_BEFORE = "it had begun before, and its task runs at most once"
BEGIN = QueueScript("begin", __package__)
LOST, BEGINS, HAS_BEGUN = 0, 1, 2


class FirstRuns(Middleware):
    """Lets a job begin that has not begun before. One round trip; during an outage it waits."""

    is_used = attrgetter("options")

    def __call__(self, attempt: Attempt) -> Any:
        """See Middleware."""
        if not attempt.options.at_most_once:
            return self.call_next(attempt)
        source, job = attempt.source, attempt.job
        begin = BEGIN(source.key(""), *claim_of(job))
        answer = until_answered(lambda: source.run_flow(single(begin)), self.worker.given_up)
        if answer == LOST:
            names = job.id, attempt.queue_name, attempt.task.module_path
            logger.warning("Job %a of queue %a (%s) does not run here: its claim was over before it began.", *names)
            return Departure()
        if answer == HAS_BEGUN:
            return Failed(WorkerLost(BEGUN_BEFORE), attempt.task, final=True)
        try:
            return self.call_next(attempt)
        except (Snooze, Interrupted) as error:
            refusal = GiveUp(f"{type(error).__name__} would run it again, and its task runs at most once")
            return Failed(refusal, attempt.task)
