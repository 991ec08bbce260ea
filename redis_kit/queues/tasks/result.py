"""Results of calls, as ``django.tasks`` has them. Imports no Redis client until a result is read."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, NoReturn

from redis_kit.core.logs.error_text import path_of, traceback_of
from redis_kit.core.text import shortened
from redis_kit.queues import framework
from redis_kit.queues.engine import history, message, payload
from redis_kit.queues.engine.history import History
from redis_kit.queues.engine.job import Job, read
from redis_kit.queues.engine.message import Message
from redis_kit.queues.errors import CorruptMessage, NoResult, NotSerializable, PayloadTooLarge, WorkerLost
from redis_kit.queues.framework import TaskError, TaskResultStatus
from redis_kit.queues.settings import whole
from redis_kit.queues.tasks import progress as stored_progress
from redis_kit.queues.tasks import registry
from redis_kit.queues.tasks.options import copy
from redis_kit.queues.tasks.progress import Progress

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # type checkers have it; that of Python knows no default before 3.13

    Value = TypeVar("Value", default=Any)
else:
    from typing import TypeVar

    Value = TypeVar("Value")
UNSTORED = "The task's return value can't be stored:"


@dataclasses.dataclass(frozen=True)
class EnqueuedJob:
    """Returned by enqueue() for a task that stores no result: the job that it added, or adds after the commit.

    ``created`` is False if the unique key of the call was in use by the job of this id; None until the commit. The
    methods of a result raise NoResult.
    """

    id: str
    queue_name: str
    created: bool | None = dataclasses.field(default=None, compare=False)

    def refresh(self) -> NoReturn:
        """Raise NoResult."""
        self._refuse("refresh()")

    async def arefresh(self) -> NoReturn:
        """See refresh()."""
        self._refuse("arefresh()")

    def wait_until_finished(self, timeout: float = 0) -> NoReturn:
        """Raise NoResult."""
        self._refuse("wait_until_finished()")

    async def await_until_finished(self, timeout: float = 0) -> NoReturn:
        """See wait_until_finished()."""
        self._refuse("await_until_finished()")

    def cancel(self) -> NoReturn:
        """Raise NoResult."""
        self._refuse("cancel()", f"; Queue({self.queue_name!r}).cancel({self.id!r}) cancels the job")

    async def acancel(self) -> NoReturn:
        """See cancel()."""
        self._refuse("acancel()", f"; Queue({self.queue_name!r}).acancel({self.id!r}) cancels the job")

    def _refuse(self, name: str, instead: str = "") -> NoReturn:
        raise NoResult(f"Job {self.id!r} stores no result, since its task has store_result=False: no {name}{instead}.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class RedisTaskResult(framework.TaskResult, Generic[Value]):  # type: ignore[type-arg, misc]
    """The result of a call. ``id`` is the id of its job.

    ``created`` is False if the unique key of the call was in use by this job. It is None until the commit, and in a
    result that was read. ``progress`` is the task's last report, if there was one.
    """

    created: bool | None = dataclasses.field(default=None, compare=False)
    progress: Progress | None = dataclasses.field(default=None, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_return_value", None)
        if not getattr(self.task, "plain_json", True):
            object.__setattr__(self, "args", list(self.args))
        else:
            framework.TaskResult.__post_init__(self)

    if TYPE_CHECKING:

        @property
        def return_value(self) -> Value: ...

    @property
    def queue_name(self) -> str:
        """Return the queue of the job."""
        return self.task.queue_name

    def refresh(self) -> None:
        """Read the result again. One round trip. Raises TaskResultDoesNotExist."""
        _copy(self.task.get_backend().get_result(self.id), self)

    async def arefresh(self) -> None:
        """See refresh()."""
        _copy(await self.task.get_backend().aget_result(self.id), self)

    def wait_until_finished(self, timeout: float) -> bool:
        """Wait until the call has ended, for at most ``timeout`` seconds. Return whether it has; refresh the result.

        The worker wakes the callers that wait; there is no polling. Raises TaskResultDoesNotExist. One round trip if
        the call has ended before, else three, and two more every 5 s.
        """
        _copy(self.task.get_backend().wait_until_finished(self.id, timeout), self)  # type: ignore[attr-defined]
        return self.is_finished

    async def await_until_finished(self, timeout: float) -> bool:
        """See wait_until_finished()."""
        _copy(await self.task.get_backend().await_until_finished(self.id, timeout), self)  # type: ignore[attr-defined]
        return self.is_finished

    def cancel(self) -> bool:
        """Cancel the call. Return False if it has already ended.

        A waiting call fails now, with the error Cancelled, and will not run. A running call is stopped at the worker's
        next heartbeat; until then it is RUNNING, and it may end before. One round trip, and another to refresh the
        result.
        """
        done: bool = self.task.get_backend().cancel(self.id)  # type: ignore[attr-defined]
        self.refresh()
        return done

    async def acancel(self) -> bool:
        """See cancel()."""
        done: bool = await self.task.get_backend().acancel(self.id)  # type: ignore[attr-defined]
        await self.arefresh()
        return done


_OWN_FIELDS = {"id", "args", "kwargs", "errors", "worker_ids"}
_SAME_FIELDS = [field.name for field in dataclasses.fields(RedisTaskResult) if field.name not in _OWN_FIELDS]


def new(task: Any, id: str, args: Any, kwargs: Any) -> RedisTaskResult:
    """Return the result of a call that is about to be enqueued."""
    return _result(task, id, Message(task.module_path, args, kwargs), TaskResultStatus.READY, alias=task.backend)


def maker(task: Any) -> Callable[[str, Any, Any], RedisTaskResult]:
    """Return a function that does the same for many calls of a task, whose ids and arguments differ."""
    model = new(task, "", (), {})
    same = [(name, getattr(model, name)) for name in _SAME_FIELDS]
    create, set_field = object.__new__, object.__setattr__

    def make(id: str, args: Any, kwargs: Any) -> RedisTaskResult:
        result = create(RedisTaskResult)
        for name, value in same:
            set_field(result, name, value)
        set_field(result, "id", id)
        set_field(result, "args", args)
        set_field(result, "kwargs", kwargs)
        set_field(result, "errors", [])
        set_field(result, "worker_ids", [])
        result.__post_init__()
        return result

    return make


def renew(result: RedisTaskResult, read: RedisTaskResult) -> None:
    """Give a result what was read of it."""
    _copy(read, result)


def started(queue_name: str, job: Job, call: Message, about: History) -> RedisTaskResult:
    """Return the result of a call as its attempt begins. Errors of earlier attempts are not in it."""
    task = _rebuilt(registry.find(call.task), queue_name, job.priority, about)
    return _result(task, job.id, call, TaskResultStatus.RUNNING, about=about)


def read_reply(queue_name: str, id: str, reply: list[Any]) -> RedisTaskResult | None:
    """Return the result in a reply of the store; None if there is none.

    Raises UnknownTask, and CorruptMessage if the reply can't be read.
    """
    with _readable(queue_name, id):
        status, at, record, reason = reply[:4]
        stored = read(record)
        about = history.read(stored.history)
        if not status or about is None:
            return None
        fields = dict(zip(reply[4::2], reply[5::2], strict=True))
        call = message.loads(stored.body)
    task = _rebuilt(registry.discovered(call.task), queue_name, stored.priority, about)
    with _readable(queue_name, id):
        result = _result(task, id, call, TaskResultStatus(status.decode()), about=about, errors=_errors(fields))
        object.__setattr__(result, "progress", stored_progress.loads(fields.get(b"progress")))
        if result.status == TaskResultStatus.FAILED and not result.errors:
            text = reason.decode("utf-8", "replace")
            result.errors.append(TaskError(exception_class_path=path_of(WorkerLost), traceback=text))
        if result.is_finished:
            finish(result, result.status, history.ended_at(at))
        if result.status == TaskResultStatus.SUCCESSFUL:
            object.__setattr__(result, "_return_value", payload.loads(fields[b"value"]))
    return result


@contextmanager
def _readable(queue_name: str, id: str) -> Iterator[None]:
    from redis_kit.queues.engine.queue import Queue

    try:
        yield
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        text = f"The result of call {id!a} is damaged: something else wrote to the key"
        key = Queue(queue_name).key(f"result:{id}")
        raise CorruptMessage(f"{text} {key!a}, or to the job. {type(error).__name__}: {error}"[:500]) from error


def finish(result: RedisTaskResult, status: TaskResultStatus, moment: datetime) -> None:
    """Note in a result that the call has ended; not before it began, even if the clocks of two machines differ."""
    object.__setattr__(result, "status", status)
    object.__setattr__(result, "finished_at", max(filter(None, (moment, result.enqueued_at, result.last_attempted_at))))


def dump_value(returned: Any) -> tuple[Any, bytes]:
    """Return a return value in JSON's types, and as JSON. Raises NotSerializable and PayloadTooLarge."""
    try:
        try:
            plain = framework.normalize_json(returned)
        except (TypeError, ValueError, RecursionError):
            _find(returned, ("returned",))
            raise
        return plain, payload.encoded(payload.plain(plain, "returned"), "it")
    except PayloadTooLarge as error:
        raise PayloadTooLarge(f"{UNSTORED} {error} Or set store_result=False.") from None
    except (TypeError, ValueError, RecursionError) as error:
        raise NotSerializable(f"{UNSTORED} {error} Return what it can, or set store_result=False.") from None


def error(raised: BaseException) -> TaskError:
    """Return an exception as a result has it."""
    return TaskError(exception_class_path=path_of(type(raised)), traceback=traceback_of(raised))


def dump_error(error: TaskError) -> bytes:
    """Return the form in which an error is stored."""
    return payload.encoded_traceback(error.exception_class_path, error.traceback)


def _find(value: Any, path: tuple[Any, ...]) -> None:
    # The framework does not say where in a value it met what it refuses, so the place is looked for afterwards.
    if len(path) > payload.DEEPEST + 1:
        raise NotSerializable(f"returned is nested more than {payload.DEEPEST} deep, or holds itself.")
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, (str, bytes)):
                where = payload.place(path)
                raise NotSerializable(f"{where} has the key {shortened(key)}; JSON has only text as keys.")
            _find(item, (*path, key))
    elif isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        for place, item in enumerate(value):
            _find(item, (*path, place))
    else:
        try:
            framework.normalize_json(value)
        except (TypeError, ValueError):
            where = payload.place(path)
            raise NotSerializable(f"{where} is {shortened(value)}, which JSON can't hold.") from None


def _errors(fields: dict[bytes, bytes]) -> list[TaskError]:
    numbered = sorted((int(name[5:]), name) for name in fields if name.startswith(b"error"))
    names = [name for _, name in numbered] + [b"cancelled"] * (b"cancelled" in fields)
    pairs = [payload.loads_error(fields[name]) for name in names]
    return [TaskError(exception_class_path=path, traceback=text) for path, text in pairs]


def _result(
    task: Any,
    id: str,
    call: Message,
    status: TaskResultStatus,
    *,
    about: History | None = None,
    alias: str = "",
    errors: list[TaskError] | None = None,
) -> RedisTaskResult:
    return RedisTaskResult(
        task=task,
        id=id,
        status=status,
        enqueued_at=about and about.enqueued_at,
        started_at=about.begun[0] if about and about.begun else None,
        last_attempted_at=about.begun[-1] if about and about.begun else None,
        finished_at=None,
        args=call.args,
        kwargs=call.kwargs,
        backend=about.backend if about else alias,
        errors=errors or [],
        worker_ids=about.workers if about else [],
    )


def _rebuilt(task: Any, queue_name: str, priority: int, about: History) -> Any:
    return copy(task, priority=priority, queue_name=whole(queue_name), backend=about.backend, run_after=about.run_after)


def _copy(source: Any, target: Any) -> None:
    for field in dataclasses.fields(source):
        if field.name not in ("task", "created"):
            object.__setattr__(target, field.name, getattr(source, field.name))
