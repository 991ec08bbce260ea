"""Gives back claimed jobs that no thread has begun."""

import logging
from collections.abc import Callable, Sequence
from functools import partial

from redis_kit.core.errors import RedisFailure
from redis_kit.queues.jobs.job import Job
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue

logger = logging.getLogger("redis_kit.worker")


class Returns:
    """``keep`` gets the jobs that certainly were not given back, ``later`` a call that is to be made again.

    While some are ``under_way``, a queue that has no ready job is not empty.
    """

    def __init__(
        self,
        sources: Sequence[WorkerQueue],
        *,
        keep: Callable[[int, list[Job]], None],
        later: Callable[[Callable[[], None]], None],
    ) -> None:
        self._sources, self._keep, self._later = sources, keep, later
        self.under_way = 0

    def give_back(self, waiting: Sequence[tuple[int, Job]]) -> None:
        """Give back jobs, each with the number of its source. One round trip for each queue."""
        self.under_way += 1
        try:
            for number in range(len(self._sources)):
                if jobs := [job for index, job in waiting if index == number]:
                    self._return(number, jobs)
        finally:
            self.under_way -= 1

    def _return(self, number: int, jobs: list[Job], *, sure: bool = True) -> None:
        """Give jobs back. Where an answer was lost they may be another's by now: only the same call can follow."""
        source = self._sources[number]
        try:
            source.release(jobs)
        except RedisFailure as error:
            logger.debug("Queue %a: %d jobs could not be given back: %s", source.name, len(jobs), error)
            if sure and not getattr(error, "indeterminate", False):
                self._keep(number, jobs)
            else:
                self._later(partial(self._return, number, jobs, sure=False))
