"""The job that a thread, or a task of an event loop, runs. Imports no Redis client: modules of tasks import it."""

from collections.abc import Callable, Mapping
from time import monotonic
from typing import TYPE_CHECKING, Any

from redis_kit.core.activity import Activity
from redis_kit.core.activity import current as current
from redis_kit.queues.engine.job import Job
from redis_kit.queues.engine.message import task_of

if TYPE_CHECKING:
    from redis_kit.queues.queue import Queue

NO_PARTS: Mapping[str, Any] = {}
INTERVAL = 0.1  # seconds between two reports that are sent


def log_fields(queue: Any, job: Job) -> dict[str, Any]:
    """Return the fields of log lines about a job."""
    return {
        "job": job.id,
        "queue": getattr(queue, "queue_name", queue.name),
        "task": task_of(job.body),
        "attempt": job.attempt,
        "worker": getattr(queue, "worker", ""),
    }


class CurrentJob(Activity):
    """A running job. ``result_ttl`` returns for how many ms its result is stored; None if none is.

    ``cancelled`` says whether somebody cancelled it. ``interruptible`` is False if the task looks at that by itself.
    ``stops`` returns whether the worker is about to stop, ``loops`` is how many resumable loops the task has begun, and
    ``went_on`` is True once one of them has stored how far it is; ``end`` is to be called with this when the task has
    succeeded. ``parts`` are those of features in the worker process, and ``number`` is that of the queue there.
    """

    cancelled = went_on = _complete = False
    loops = 0
    end: "Callable[[CurrentJob], object] | None" = None
    _next_report = 0.0

    def __init__(
        self,
        queue: "Queue",
        job: Job,
        result_ttl: Callable[..., int] | None,
        *,
        interruptible: bool = True,
        stops: Callable[[], bool] = lambda: False,
        parts: Mapping[str, Any] = NO_PARTS,
        number: int = 0,
    ) -> None:
        self.queue, self.job, self.result_ttl = queue, job, result_ttl
        self.interruptible, self.stops, self.parts, self.number = interruptible, stops, parts, number

    @property
    def work(self) -> str:  # type: ignore[override]
        """See Activity."""
        return f"job {task_of(self.job.body)} {self.job.id}"

    @property
    def running(self) -> "CurrentJob":
        """See Activity."""
        return self

    def fields(self) -> dict[str, Any]:
        """See Activity."""
        return log_fields(self.queue, self.job)

    def begin_loop(self, end: "Callable[[CurrentJob], object]") -> int:
        """Note that a resumable loop begins, and what forgets it; return its number, from 0."""
        self.loops += 1
        self.end = end  # each forgets all loops
        return self.loops - 1

    def may_report(self, done: float, total: float | None) -> bool:
        """Return whether to send a report: ten a second, and the first that says that all is done."""
        now, complete = monotonic(), total is not None and done >= total
        if now < self._next_report and (self._complete or not complete):
            return False
        self._next_report, self._complete = now + INTERVAL, complete
        return True


def get() -> CurrentJob | None:
    """Return the job that runs here; None outside of a worker."""
    running: CurrentJob | None = current.get().running
    return running


def cancelled() -> bool:
    """Return whether the running job was cancelled. No round trip: the worker learns of it with a heartbeat.

    It is of use in a task with ``on_cancel="flag"``, which is not interrupted. False outside of a worker.
    """
    return (running := get()) is not None and running.cancelled
