"""What the kit's own middleware is made of."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import Any, NamedTuple

from redis_kit.queues.tasks.current_job import CurrentJob
from redis_kit.queues.worker.run.attempt import Attempt
from redis_kit.queues.worker.run.event_loop import EventLoop
from redis_kit.queues.worker.run.job_logs import JobLogs
from redis_kit.queues.worker.run.sink import Routes
from redis_kit.queues.worker.run.statistics import TaskStatistics
from redis_kit.queues.worker.run.timeouts import JobKey, Timeouts
from redis_kit.queues.worker.shared.status_board import StatusBoard
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue

Handler = Callable[[Attempt], Any]


@dataclass
class WorkerContext:
    """What the threads of a worker process share. ``stops`` returns whether the process is about to stop.

    With ``isolates``, a job whose process died runs in a process of its own.
    """

    sources: Sequence[WorkerQueue]
    board: StatusBoard
    routes: Routes
    deadlines: Timeouts = field(default_factory=Timeouts)
    coroutines: EventLoop = field(default_factory=EventLoop)
    given_up: Event = field(default_factory=Event)
    stops: Callable[[], bool] = lambda: False
    logs: JobLogs | None = None
    statistics: TaskStatistics | None = None
    isolates: bool = False
    running: dict[JobKey, CurrentJob] = field(default_factory=dict)


class Kind(NamedTuple):
    """What decides which middleware an attempt needs."""

    is_known: bool  # there is a task for the call
    expires: bool
    has_sink: bool
    has_step: bool
    has_result: bool
    has_crashed: bool  # a process in which the job ran


class Middleware:
    """A link of the chain: it gets an attempt, and passes it on to the next one or ends it.

    Outside of Presence links return the ending of the attempt, and inside of it what the task returned. Errors pass
    through all of them.
    """

    def __init__(self, call_next: Handler, worker: WorkerContext) -> None:
        self.call_next, self.worker = call_next, worker

    def __call__(self, attempt: Attempt) -> Any:
        """Run an attempt."""
        raise NotImplementedError

    @staticmethod
    def is_used(kind: Kind, worker: WorkerContext) -> bool:
        """Return whether attempts of this kind need the link: the others don't call it."""
        return True
