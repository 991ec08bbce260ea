"""One run of a job: the attempt as middleware sees it, its endings, what records its result, and middleware itself."""

import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from threading import Event
from typing import Any, ClassVar, NamedTuple

from django.utils import timezone

from redis_kit.core.errors import ConfigurationError, RedisFailure
from redis_kit.core.logs.error_text import cut_frames
from redis_kit.core.signals import send_safely
from redis_kit.queues import framework
from redis_kit.queues.engine import history, message
from redis_kit.queues.engine.feature import ProcessPart
from redis_kit.queues.engine.job import Job
from redis_kit.queues.engine.message import Message
from redis_kit.queues.errors import (
    CorruptMessage,
    InvalidWorkflow,
    NewerMessage,
    NotSerializable,
    PayloadTooLarge,
    UnknownTask,
)
from redis_kit.queues.tasks import registry
from redis_kit.queues.tasks.current_job import CurrentJob
from redis_kit.queues.tasks.registry import backend_of
from redis_kit.queues.tasks.task import Task, extended
from redis_kit.queues.worker.run.timeouts import EventLoop, JobKey, Timeouts
from redis_kit.queues.worker.shared.status_board import StatusBoard
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue

_NOTHING = object()


def recorder_of(source: WorkerQueue, job: Job, backends: dict[str, Any]) -> "ResultRecorder | None":
    """Return the recorder of a job's result; None if no result is stored. ``backends`` is a cache by alias."""
    alias = history.backend(job.history) if job.history else None
    if alias is None:
        return None
    if alias not in backends:
        backends[alias] = _backend(alias)
    return ResultRecorder(source, job, backends[alias], alias)


class ResultRecorder:
    """The result of one attempt, from beginning to end. It is built only when something asks for it."""

    def __init__(self, source: WorkerQueue, job: Job, backend: Any, alias: str) -> None:
        from redis_kit.queues.tasks import result as results

        self.alias = alias
        self._results, self._backend = results, backend
        self._source, self._job = source, job
        self._call: Message | None = None
        self._made: Any = None
        self._returned: Any = _NOTHING

    def begin(self, call: Message) -> None:
        """Note that the attempt begins. No round trip; see result()."""
        self.resume(call)
        if framework.heard(framework.task_started, logging.INFO):
            self._tell(framework.task_started)

    def resume(self, call: Message) -> None:
        """Take over an attempt that began in another process, whose start was announced there."""
        self._call = call

    def result(self) -> Any:
        """Return the result; None before begin() or resume().

        One round trip if there were attempts before, for their errors.
        """
        if self._made is None and self._call is not None and (about := history.read(self._job.history)):
            self._made = self._results.started(self._source.name, self._job, self._call, about)
            if self._made.attempts > 1:
                with contextlib.suppress(RedisFailure, CorruptMessage):
                    reply = self._source.find_result(self._job.id)
                    known_result = self._results.read_reply(self._source.name, self._job.id, reply)
                    self._made.errors.extend(known_result.errors if known_result else [])
        return self._made

    def context(self) -> Any:
        """Return the context for a task that takes one."""
        return framework.TaskContext(task_result=self.result())

    def value(self, returned: Any) -> bytes:
        """Return the stored form of what the task returned. Raises NotSerializable and PayloadTooLarge."""
        self._returned, stored = self._results.dump_value(returned)
        return bytes(stored)

    def error(self, raised: BaseException) -> tuple[bytes, int]:
        """Return the stored form of an error, and for how many milliseconds it is stored."""
        task_error = self._results.error(raised)
        if result := self.result():
            result.errors.append(task_error)
        return self._results.dump_error(task_error), self.keeps(failed=True)

    def keeps(self, *, failed: bool) -> int:
        """Return for how many milliseconds the result is stored."""
        return int(self._backend.result_ttl_ms(failed=failed))

    @property
    def is_heard(self) -> bool:
        """Return whether anything is told of the end of results."""
        return framework.heard(framework.task_finished, logging.INFO)

    def succeeded(self) -> None:
        """Announce that the task has succeeded."""
        self._end(framework.TaskResultStatus.SUCCESSFUL)

    def failed(self, raised: BaseException) -> None:
        """Announce that the task has failed and will not be tried again."""
        try:
            raise raised  # receivers look for the exception that is being handled
        except BaseException:
            with framework.unlogged(framework.task_finished):  # the worker has logged the error already
                self._end(framework.TaskResultStatus.FAILED)
        finally:
            cut_frames(raised, __file__)  # this frame refers to the error: a circle

    def _end(self, status: Any) -> None:
        if result := self.result():
            if self._returned is not _NOTHING:
                object.__setattr__(result, "_return_value", self._returned)
            self._results.finish(result, status, timezone.now())
            self._tell(framework.task_finished)

    def _tell(self, signal: Any) -> None:
        if result := self.result():
            send_safely(signal, type(self._backend), task_result=result)


def _backend(alias: str) -> Any:
    # A worker may have other settings than the process that enqueued the job.
    from redis_kit.queues.backend import RedisTaskBackend as kind

    with contextlib.suppress(framework.InvalidTaskBackend, ConfigurationError):
        if isinstance(backend := backend_of(alias), kind) and backend.chosen:
            return backend
    return kind(alias, {})


UNSTORED = (NotSerializable, PayloadTooLarge, InvalidWorkflow)  # raised for a return value, or steps that were added


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
    recorder: ResultRecorder | None = None
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

    def load(self, backends: dict[str, Any]) -> None:
        """Read the call, and find its task. Raises CorruptMessage. ``backends`` is a cache."""
        if self.job.history:
            self.recorder = recorder_of(self.source, self.job, backends)
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


class Isolated(NamedTuple):
    """It did not begin: the job is to run in a process of its own."""


SUCCEEDED, ISOLATED = Succeeded(), Isolated()


def failed_with(attempt: Attempt, error: BaseException) -> Failed:
    """Return the ending of an attempt in which this was raised."""
    kind = type(error)  # isinstance() asks the error for its class, which may raise
    if attempt.runs:
        return Failed(error, attempt.task, final=attempt.has_returned and issubclass(kind, UNSTORED))
    return Failed(error, final=issubclass(kind, CorruptMessage) and not issubclass(kind, NewerMessage))


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
