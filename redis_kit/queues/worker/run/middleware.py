"""What the kit's own middleware is made of."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from threading import Event
from typing import Any, ClassVar

from redis_kit.queues.engine.feature import ProcessPart
from redis_kit.queues.tasks.current_job import CurrentJob
from redis_kit.queues.worker.run.attempt import Attempt
from redis_kit.queues.worker.run.event_loop import EventLoop
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
    deadlines: Timeouts = field(default_factory=Timeouts)
    coroutines: EventLoop = field(default_factory=EventLoop)
    given_up: Event = field(default_factory=Event)
    stops: Callable[[], bool] = lambda: False
    parts: dict[str, ProcessPart] = field(default_factory=dict)  # of features, by their names
    isolates: bool = False
    running: dict[JobKey, CurrentJob] = field(default_factory=dict)


class Middleware:
    """A link of the chain: it gets an attempt, and passes it on to the next one or ends it.

    Outside of Presence links return the ending of the attempt, and inside of it what the task returned. Errors pass
    through all of them. ``is_used`` tells from an attempt whether it needs the link: the others don't call it.
    """

    is_used: ClassVar["attrgetter[Any]"] = attrgetter("job")  # all of them

    def __init__(self, call_next: Handler, worker: WorkerContext) -> None:
        self.call_next, self.worker = call_next, worker

    def __call__(self, attempt: Attempt) -> Any:
        """Run an attempt."""
        raise NotImplementedError

    @classmethod
    def usage(cls, worker: WorkerContext) -> "attrgetter[Any] | None":
        """Return ``is_used``, or None in a worker that does not need the link. One that has to look overrides this."""
        return cls.is_used
