"""A job whose call this worker can't run: it goes back, for others. A worker with other code may be there, or come."""

from typing import NamedTuple

from redis_kit.queues.errors import Cancelled
from redis_kit.queues.jobs import call_shape
from redis_kit.queues.jobs.job import Job
from redis_kit.queues.jobs.message import Message, NewerMessage
from redis_kit.queues.store import unknown
from redis_kit.queues.worker.run.outcome import FailedAttempt, failed
from redis_kit.queues.worker.run.recorder import ResultRecorder
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue


class UnfitJob(NamedTuple):
    """A job, what its message holds, and why this worker can't run it."""

    source: WorkerQueue
    job: Job
    call: Message | NewerMessage
    why: Exception
    keeper: ResultRecorder | None

    def give_back(self) -> FailedAttempt | None:
        """Give it back, counting no attempt; else return what it dies of. One round trip; a repeat is safe.

        It dies where it was given back for too long, or somebody cancelled it while this worker had it.
        """
        expires = 0 if isinstance(self.call, NewerMessage) else self.call.expires
        answer = self.source.defer(self.job, call_shape.shape(self.call), expires)
        if answer == unknown.GIVEN_BACK:
            return None
        cancelled = Cancelled("The job was cancelled while it waited.")
        error = cancelled if answer == unknown.CANCELLED else self.why
        return failed(self.source, self.job, error, keeper=self.keeper, final=True)
