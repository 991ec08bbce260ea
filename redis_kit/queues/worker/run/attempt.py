"""One run of a job as middleware sees it, the ways in which it ends, and what middleware is made of."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from threading import Event
from typing import Any, ClassVar, NamedTuple

from redis_kit.queues.engine import message
from redis_kit.queues.engine.feature import ProcessPart, Recorder
from redis_kit.queues.engine.job import Job
from redis_kit.queues.engine.message import Message
from redis_kit.queues.errors import NewerMessage, UnknownTask
from redis_kit.queues.tasks import registry
from redis_kit.queues.tasks.current_job import CurrentJob
from redis_kit.queues.tasks.task import Task, extended
from redis_kit.queues.worker.run.timeouts import EventLoop, JobKey, Timeouts
from redis_kit.queues.worker.shared.status_board import StatusBoard
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue


class Attempt:
    """One run of a job. Middleware of a project may read it, and change ``args`` and ``kwargs``.

    ``task`` is the task, ``job`` the job, ``queue_name`` its queue; ``args`` and ``kwargs`` are those of the call, and
    ``headers`` what ``process_enqueue()`` of the middleware added to it.
    """

    task: Task[..., Any]
    call: Message
    args: list[Any]
    kwargs: dict[str, Any]
    headers: Mapping[str, Any]
    recorder: Recorder | None = None
    unknown: UnknownTask | NewerMessage | None = None  # why this worker has no task for the call
    repeatable: Callable[[Any], Any] | None = None  # returns what records its success again, given the acknowledgement
    extra: Any = None  # what the feature of ``call.extra`` knows of it
    options: Any = None  # of its task, that features bring; None if it has none
    context: Any = None  # for a task that takes one
    value = b""  # what the task returned, as it is stored
    seconds: float | None = None  # for which the task ran
    trace: Mapping[str, str] = {}  # the ids of its span
    announcements: tuple[Callable[[], object], ...] = ()  # to be called once its success is recorded
    runs = has_returned = False  # from when on an error is that of the task, and of what it returned
    jobs = 1  # that ended with it
    was_called = False  # the task; middleware of the project is checked by this and by the next two
    error: BaseException | None = None
    returned: Any = None

    def __init__(self, slot: int, number: int, source: WorkerQueue, job: Job) -> None:
        self.slot, self.number, self.source, self.job = slot, number, source, job

    @property
    def queue_name(self) -> str:
        """Return the queue of the job."""
        return self.source.queue_name

    def load(self, recorder_of: Callable[[WorkerQueue, Job], Recorder | None] | None = None) -> None:
        """Read the call, and find its task and the recorder of its result. Raises CorruptMessage."""
        if self.job.history and recorder_of:
            self.recorder = recorder_of(self.source, self.job)
        try:
            self.call = call = message.loads(self.job.body)
        except NewerMessage as error:
            self.call, self.unknown = Message("", [], {}), error.with_traceback(None)
            return
        self.args, self.kwargs, self.headers = call.args, call.kwargs, call.headers
        try:
            task = registry.find_for(call)
            self.task = task if isinstance(task, Task) else extended(task)
            self.options = self.task.options
        except UnknownTask as error:
            self.unknown = error.with_traceback(None)  # it refers to this frame


class Succeeded(NamedTuple):
    """The task has returned; its result, if one is stored, is in the attempt."""


class Failed(NamedTuple):
    """An error ended it; ``task`` is None if the worker itself failed. ``final``: another attempt can't help."""

    error: BaseException
    task: Task[..., Any] | None = None
    final: bool = False


SUCCEEDED = Succeeded()


Handler = Callable[[Attempt], Any]


@dataclass
class WorkerContext:
    """What the threads of a worker process share. ``stops`` returns whether the process is about to stop.

    A job whose process died is run by ``isolate``, in a process of its own, if there is one.
    """

    sources: Sequence[WorkerQueue]
    board: StatusBoard
    deadlines: Timeouts = field(default_factory=Timeouts)
    coroutines: EventLoop = field(default_factory=EventLoop)
    given_up: Event = field(default_factory=Event)
    stops: Callable[[], bool] = lambda: False
    parts: dict[str, ProcessPart] = field(default_factory=dict)  # of features, by their names
    isolate: Callable[[int, Job], None] | None = None
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
