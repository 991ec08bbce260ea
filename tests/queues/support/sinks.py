"""A system that takes jobs over, in the test's own process."""

from collections.abc import Sequence
from typing import Any

from redis_kit.queues import NotTaken, Sink
from redis_kit.queues.engine.job import Job
from redis_kit.queues.engine.message import Message
from redis_kit.queues.worker.run.sink import Answer
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


batches: list[int] = []  # how many jobs came at once; less than 0 if none was taken


class Together(Elsewhere):
    """Takes ten jobs at once."""

    batch_size = 10

    def hand_over_many(self, queue: WorkerQueue, jobs: Sequence[tuple[Job, Message]]) -> list[Answer]:
        """Take the jobs, or raise the next error. A job with the argument "wrong" makes it forget its answers."""
        if errors:
            batches.append(-len(jobs))
            raise errors.pop(0)
        batches.append(len(jobs))
        answers = super().hand_over_many(queue, jobs)
        return [] if ["wrong"] in [call.args for _, call in jobs] else answers
