"""Tasks: functions that run in a worker. Imports no Redis client, since modules of tasks are imported at start-up."""

import inspect
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Generic, NamedTuple, ParamSpec, TypeVar, cast, overload

from asgiref.sync import async_to_sync, sync_to_async
from django.db import transaction

from redis_kit.core.errors import InvalidValue, RedisKitError
from redis_kit.core.keys import encode
from redis_kit.queues import arguments, identity, message, registry

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
TIMEOUT = (0.001, 604_800.0)  # seconds


class InvalidTask(RedisKitError, TypeError):
    """A function can't be a task: no worker could find it by its name."""


class BadArguments(RedisKitError, TypeError):
    """The arguments do not fit the task's signature; nothing was sent."""


class TaskTimeout(RedisKitError, TimeoutError):
    """A task ran for longer than its ``timeout``. Raised inside the task, which may clean up."""


class Handle(NamedTuple):
    """What enqueue() returns: which job it made, or makes after the commit."""

    id: str
    queue_name: str


@dataclass(frozen=True)
class Task(Generic[Parameters, Result]):
    """A function that can be enqueued. Calling it runs it here and now."""

    func: Callable[Parameters, Result]
    name: str
    queue_name: str = "default"
    max_attempts: int | None = None
    timeout: float | None = 300.0
    priority: int = 0
    enqueue_on_commit: bool = True
    run_after: datetime | timedelta | None = None
    signature: inspect.Signature = field(default_factory=inspect.Signature, repr=False, compare=False)

    def __call__(self, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        """Run the function itself, in this process."""
        return self.func(*args, **kwargs)

    @property
    def is_async(self) -> bool:
        """Say whether the function is a coroutine function."""
        return inspect.iscoroutinefunction(self.func)

    def call(self, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Any:
        """Run it in this process and return what it returns; a coroutine function in an event loop."""
        return async_to_sync(self._coroutine)(*args, **kwargs) if self.is_async else self.func(*args, **kwargs)

    async def acall(self, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Any:
        """See call()."""
        if self.is_async:
            return await self._coroutine(*args, **kwargs)
        return await sync_to_async(self.func)(*args, **kwargs)

    def using(
        self,
        *,
        run_after: datetime | timedelta | None = None,
        priority: int | None = None,
        queue_name: str | None = None,
    ) -> "Task[Parameters, Result]":
        """Return the same task with another time, priority or queue. A time in the past means now."""
        changes: dict[str, Any] = {"run_after": run_after, "priority": priority, "queue_name": queue_name}
        return _checked(replace(self, **{name: value for name, value in changes.items() if value is not None}))

    def enqueue(self, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Handle:
        """Add a job that calls the task, and return its handle. One round trip.

        In a transaction the job is added after the commit, and not at all after a rollback; ``enqueue_on_commit=False``
        adds it now. Raises BadArguments, NotSerializable, PayloadTooLarge at once, and RedisUnavailable.
        """
        job = identity.new_job(), self._body(args, kwargs)
        if self.enqueue_on_commit and transaction.get_connection().in_atomic_block:
            transaction.on_commit(lambda: self._send(job))
        else:
            self._send(job)
        return Handle(job[0], self.queue_name)

    async def aenqueue(self, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Handle:
        """See enqueue(). The job is added now: Django has no transactions in asynchronous code."""
        from redis_kit.queues import sending

        job = identity.new_job(), self._body(args, kwargs)
        await sending.asend(self.queue_name, job, self.run_after, self.priority)
        return Handle(job[0], self.queue_name)

    def _send(self, job: tuple[str, bytes]) -> None:
        from redis_kit.queues import sending

        sending.send(self.queue_name, job, self.run_after, self.priority)

    def _body(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        try:
            self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise BadArguments(f"{self.name}{self.signature}: {error}.") from None
        return message.dumps(self.name, args, kwargs)

    async def _coroutine(self, *args: Any, **kwargs: Any) -> Any:
        return await cast(Coroutine[Any, Any, Any], self.func(*args, **kwargs))


@overload
def task(func: Callable[Parameters, Result]) -> Task[Parameters, Result]: ...


@overload
def task(
    *,
    queue_name: str = "default",
    max_attempts: int | None = None,
    timeout: float | None = 300.0,
    priority: int = 0,
    enqueue_on_commit: bool = True,
) -> Callable[[Callable[Parameters, Result]], Task[Parameters, Result]]: ...


def task(
    func: Callable[..., Any] | None = None,
    *,
    queue_name: str = "default",
    max_attempts: int | None = None,
    timeout: float | None = 300.0,
    priority: int = 0,
    enqueue_on_commit: bool = True,
) -> Any:
    """Make a function of a module a task, as ``@task`` or ``@task(queue_name="mail")``.

    It is attempted ``max_attempts`` times (1 to 1000; 3, or what the option ``MAX_ATTEMPTS`` says), with growing random
    waits between. After ``timeout`` seconds (None: never) TaskTimeout is raised inside it; a call into C code notices
    when it returns. Of two ready jobs the one with the higher priority (-100 to 100) starts first.
    """

    def made(function: Callable[..., Any]) -> Task[..., Any]:
        found = Task(
            function,
            _name(function),
            queue_name,
            max_attempts,
            timeout,
            priority,
            enqueue_on_commit,
            signature=inspect.signature(function),
        )
        registry.register(_checked(found))
        return found

    return made if func is None else made(func)


def _name(function: Any) -> str:
    module, name = getattr(function, "__module__", "?"), getattr(function, "__qualname__", "?")
    if not inspect.isfunction(function) or not name.isidentifier():
        raise InvalidTask(f"{module}.{name} can't be a task: it must be a function at the top of a module.")
    if module == "__main__":
        raise InvalidTask(f"{module}.{name} can't be a task: no worker can import the program that was started.")
    return f"{module}.{name}"


def _checked(task: Task[Parameters, Result]) -> Task[Parameters, Result]:
    encode(task.queue_name)
    arguments.whole("priority", task.priority, arguments.PRIORITY)
    if task.max_attempts is not None:
        arguments.whole("max_attempts", task.max_attempts, arguments.LIMIT)
    if task.timeout is not None:
        arguments.seconds("timeout", task.timeout, TIMEOUT)
    if isinstance(task.run_after, datetime):
        arguments.moment(task.run_after)
    elif isinstance(task.run_after, timedelta):
        arguments.milliseconds(task.run_after)
    elif task.run_after is not None:
        raise InvalidValue(f"run_after must be a datetime or a timedelta, not {task.run_after!r}.")
    return task
