"""Sinks: other systems that run the jobs of a queue. Without one, jobs run in this worker."""

from collections.abc import Sequence

from redis_kit.queues.engine.job import Job
from redis_kit.queues.engine.message import Message
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue

Answer = float | Exception | None  # of a sink for a job: what hand_over() returned or raised


class Sink:
    """Hands the jobs of queues over to another system. A worker process has one, which its threads share.

    ``title`` is how the log names that system. ``batch_size`` is how many jobs hand_over_many() takes at once, at most.
    """

    title = "the other system"
    batch_size: int = 1

    def hand_over(self, queue: WorkerQueue, job: Job, call: Message) -> float | None:
        """Return when the other system has the job: None, and the job is done here.

        Seconds if the other system claims the job from the queue, which hands it over once more if it did not do so
        within that time. Raises NotTaken if the other system does not take it now; that is not a failed attempt, as any
        other error is.
        """
        raise NotImplementedError

    def hand_over_many(self, queue: WorkerQueue, jobs: Sequence[tuple[Job, Message]]) -> list[Answer]:
        """Hand jobs over, and return for each, in their order, what hand_over() returns, or the error that it raises.

        A system to which many jobs cost no more than a few overrides this and ``batch_size``: 1 by default, so that
        threads hand jobs over side by side. An error that is raised here stands for the answers to all jobs.
        """
        answers: list[Answer] = []
        for job, call in jobs:
            try:
                answers.append(self.hand_over(queue, job, call))
            except Exception as error:
                answers.append(error)
        return answers

    def prepare(self) -> None:
        """Connect, before there is a job, so that the first one is not late. It need not succeed."""

    def close(self) -> None:
        """End the connections, as the worker process stops."""
