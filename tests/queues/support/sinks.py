"""A system that takes jobs over, in the test's own process."""

from typing import Any

from redis_kit.queues import NotTaken, Sink
from redis_kit.queues.jobs.job import Job
from redis_kit.queues.jobs.message import Message
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue

taken: list[Any] = []
errors: list[BaseException] = []  # raised in this order, before it takes jobs again


class Elsewhere(Sink):
    """Takes a job by its first argument, which may be an instruction."""

    title = "Elsewhere"

    def hand_over(self, queue: WorkerQueue, job: Job, call: Message) -> float | None:
        """Take the job, or raise the next error."""
        if errors:
            raise errors.pop(0)
        if call.args == ["refused"]:
            raise NotTaken("not this one", unavailable=False)
        if call.args == ["broken"]:
            raise ValueError("broken")
        taken.append((queue.name, call.args[0], job.attempt))
        return 60.0 if call.args == ["claims it"] else None
