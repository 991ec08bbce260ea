"""Tasks: functions that run in a worker. Imports no Redis client, because Django imports tasks at start-up."""

import inspect
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as changed
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Concatenate, Generic, Literal, ParamSpec, Protocol, Self, TypeVar, overload

from django.conf import settings
from django.utils import timezone

from redis_kit.core.text import shortened
from redis_kit.queues import framework
from redis_kit.queues.engine import feature
from redis_kit.queues.engine.unique import By, Until
from redis_kit.queues.errors import InvalidArguments, InvalidTask
from redis_kit.queues.tasks import registry
from redis_kit.queues.tasks.options import Limit, OnCancel, check_function, check_options, copy, of_features
from redis_kit.queues.tasks.retry import Backoff

if TYPE_CHECKING:
    from redis_kit.queues.tasks.result import RedisTaskResult

Call = Sequence[Any] | Mapping[str, Any]  # one of many: its arguments, or its named arguments
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class Step(Protocol):
    """A part of a workflow: a call of a task, as ``step()`` returns it, a chain or a group."""

    @property
    def result(self) -> Any:
        """Return what stands for its result in the arguments of another step."""

    def after(self, *parts: Any) -> Self:
        """Let it wait for other parts of its group, and return it."""

    def enqueue(self) -> Any:
        """Start a workflow of this step alone."""

    async def aenqueue(self) -> Any:
        """See enqueue()."""


@dataclass(frozen=True, kw_only=True)
class Task(framework.Task, Generic[Parameters, Result]):  # type: ignore[type-arg]
    """A function that can be enqueued: a task of ``django.tasks`` with more options. Calling it runs the function."""

    max_attempts: int | None = None
    timeout: float | None = 300.0
    enqueue_on_commit: bool = True
    store_result: bool = True
    run_in: timedelta | None = None  # from the moment at which the job is added
    group: str | None = None
    concurrency: int | None = None
    rate: str | None = None
    limits: tuple[Limit, ...] = ()
    unique: bool | Until = False
    unique_by: By = None
    replace: bool = False
    expires: float | timedelta | None = None
    backoff: Backoff = None
    on_cancel: OnCancel = "raise"
    outbox: bool | str | None = None
    tags: tuple[str, ...] = ()
    options: Any = None  # those that features bring, if one of them is used; see feature.option_class()
    plain_json: bool = True  # arguments may hold only JSON types, as in django.tasks

    def __post_init__(self) -> None:
        for name in ("backoff", "limits", "tags"):
            if isinstance(given := getattr(self, name), list):
                object.__setattr__(self, name, tuple(given))  # a task can be hashed
        if not self.plain_json:
            check_options(self)
            if self.options is not None:
                for name, value in feature.declared(self).items():
                    object.__setattr__(self, name, value)
        # A script may define a task before it configures Django; the task is checked when it is enqueued.
        if settings.configured:
            self.get_backend().validate_task(self)

    def __call__(self, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        """Run the function itself, in this process."""
        returned: Result = self.func(*args, **kwargs)
        return returned

    @property
    def is_async(self) -> bool:
        """Return whether the function is a coroutine function."""
        return registry.is_coroutine(self.func)

    @property
    def signature(self) -> inspect.Signature:
        """Return the signature of the function."""
        return registry.signature_of(self.func)

    def using(
        self,
        *,
        run_after: datetime | timedelta | None = None,
        priority: int | None = None,
        queue_name: str | None = None,
        backend: str | None = None,
        expires: float | timedelta | None = None,
        group: str | None = None,
        tags: Sequence[str] | None = None,
    ) -> Self:
        """Return a copy of the task with another time, priority, queue, backend, expiry, group or tags.

        A time in the past means now. A timedelta counts from the moment at which the job is added. Groups, such as
        "tenant:7", take turns: each starts one of its ready jobs of the same priority.
        Tags take the place of those of the task.
        """
        given = {
            **{"priority": priority, "queue_name": queue_name, "backend": backend},
            **{"expires": expires, "group": group, "tags": tags},
        }
        changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        if isinstance(run_after, timedelta):
            changes |= {"run_in": run_after, "run_after": None}
        elif run_after is not None:
            changes |= {"run_in": None, "run_after": run_after}
        return changed(self, **changes)

    def enqueue(self, *args: Parameters.args, **kwargs: Parameters.kwargs) -> "RedisTaskResult[Result]":
        """Add a job that calls the task. Return its result, or an EnqueuedJob if none is stored. One round trip.

        In a transaction the job is added after the commit, and not at all after a rollback; ``enqueue_on_commit=False``
        adds it now. Raises InvalidArguments, NotSerializable, PayloadTooLarge at once, and RedisUnavailable. After a
        commit that one is logged in place of being raised.
        """
        backend = registry.backend_of(self.backend)
        task = self if self.run_in is None else self._for(backend)
        result: RedisTaskResult[Result] = backend.enqueue(task, args, kwargs)
        return result

    async def aenqueue(self, *args: Parameters.args, **kwargs: Parameters.kwargs) -> "RedisTaskResult[Result]":
        """See enqueue(). The job is added now: Django has no transactions in asynchronous code."""
        backend = self.get_backend()
        result: RedisTaskResult[Result] = await backend.aenqueue(self._for(backend), args, kwargs)
        return result

    def enqueue_many(self, calls: Iterable[Call]) -> list["RedisTaskResult[Result]"]:
        """Add a job for each call, and return their results in this order. One round trip for 1,000.

        A call is a tuple of arguments, such as ``(42,)``, or a dict of named ones. All are checked before one is sent.
        In a transaction they are added after the commit, and stored in the outbox by one statement for some hundred.
        If a reply is lost the calls are sent once more, which adds none twice, unless the task is unique: as with
        enqueue(), RedisUnavailable says that these may have been added. With several errors, the first one is raised
        after all were sent; ``created`` of a result is True if its job was added.
        """
        backend = self.get_backend()
        task = self._for(backend)
        if not hasattr(backend, "enqueue_many"):
            return [backend.enqueue(task, *arguments(call)) for call in calls]
        results: list[RedisTaskResult[Result]] = backend.enqueue_many(task, calls)
        return results

    async def aenqueue_many(self, calls: Iterable[Call]) -> list["RedisTaskResult[Result]"]:
        """See enqueue_many(). The jobs are added now."""
        backend = self.get_backend()
        task = self._for(backend)
        if not hasattr(backend, "aenqueue_many"):
            return [await backend.aenqueue(task, *arguments(call)) for call in calls]
        results: list[RedisTaskResult[Result]] = await backend.aenqueue_many(task, calls)
        return results

    def step(self, *args: Parameters.args, **kwargs: Parameters.kwargs) -> "Step":
        """Return a call of the task for a workflow; see chain() and group(). Nothing is sent."""
        made: Step = feature.provided("step_class")(self, args, kwargs)
        return made

    def get_backend(self) -> Any:
        """Return the backend that ``TASKS`` names, RedisTaskBackend in a project without that setting."""
        return registry.backend_of(self.backend)

    def _for(self, backend: Any) -> "Task[Parameters, Result]":
        """Return the task as a backend understands it: other backends know times, but not delays."""
        if self.run_in is None or getattr(backend, "supports_delay", False):
            return self
        return changed(self, run_in=None, run_after=timezone.now() + self.run_in)


def arguments(call: Call) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of one of many calls, and the named ones. Raises InvalidArguments."""
    if type(call) is tuple:
        return call, {}
    if isinstance(call, Mapping):
        return (), dict(call)
    if isinstance(call, (tuple, list)):
        return tuple(call), {}
    hint = "a tuple of arguments, such as (42,), or a dict of named ones"
    raise InvalidArguments(f"A call is {hint}, not {shortened(call)}.")


def extended(task: Any) -> Task[..., Any]:
    """Return a task of django.tasks as a Task of the kit; it may be one already."""
    if isinstance(task, Task):
        return task
    copied: Task[..., Any] = copy(task, Task)
    return copied


if TYPE_CHECKING:

    class CoroutineTask(Task[Parameters, Coroutine[Any, Any, Result]]):
        """The task of a coroutine function, as type checkers see it: its result is what an await of it returns."""

        def enqueue(  # type: ignore[override]
            self, *args: Parameters.args, **kwargs: Parameters.kwargs
        ) -> RedisTaskResult[Result]: ...
        async def aenqueue(  # type: ignore[override]
            self, *args: Parameters.args, **kwargs: Parameters.kwargs
        ) -> RedisTaskResult[Result]: ...

    class Decorator(Protocol):
        """Makes a task of a function: ``@task(...)`` is one."""

        @overload
        def __call__(
            self, func: Callable[Parameters, Coroutine[Any, Any, Result]]
        ) -> CoroutineTask[Parameters, Result]: ...
        @overload
        def __call__(self, func: Callable[Parameters, Result]) -> Task[Parameters, Result]: ...

    class ContextDecorator(Protocol):
        """Makes a task of a function whose first argument is the context, which calls of the task leave out."""

        @overload
        def __call__(
            self, func: Callable[Concatenate[Any, Parameters], Coroutine[Any, Any, Result]]
        ) -> CoroutineTask[Parameters, Result]: ...
        @overload
        def __call__(self, func: Callable[Concatenate[Any, Parameters], Result]) -> Task[Parameters, Result]: ...


@overload
def task(func: Callable[Parameters, Coroutine[Any, Any, Result]], /) -> "CoroutineTask[Parameters, Result]": ...


@overload
def task(func: Callable[Parameters, Result], /) -> Task[Parameters, Result]: ...


@overload
def task(*, takes_context: Literal[True], **options: Any) -> "ContextDecorator": ...


@overload
def task(
    *,
    queue_name: str = "default",
    max_attempts: int | None = None,
    timeout: float | None = 300.0,
    priority: int = 0,
    enqueue_on_commit: bool = True,
    store_result: bool = True,
    takes_context: Literal[False] = False,
    backend: str = "default",
    unique: bool | Until = False,
    unique_by: By = None,
    replace: bool = False,
    expires: float | timedelta | None = None,
    backoff: Backoff = None,
    concurrency: int | None = None,
    rate: str | None = None,
    limits: Sequence[Limit] = (),
    on_cancel: OnCancel = "raise",
    outbox: bool | str | None = None,
    tags: Sequence[str] = (),
    **options: object,
) -> "Decorator": ...


def task(
    func: Callable[..., Any] | None = None,
    /,
    *,
    queue_name: str = "default",
    max_attempts: int | None = None,
    timeout: float | None = 300.0,
    priority: int = 0,
    enqueue_on_commit: bool = True,
    store_result: bool = True,
    takes_context: bool = False,
    backend: str = "default",
    unique: bool | Until = False,
    unique_by: By = None,
    replace: bool = False,
    expires: float | timedelta | None = None,
    backoff: Backoff = None,
    concurrency: int | None = None,
    rate: str | None = None,
    limits: Sequence[Limit] = (),
    on_cancel: OnCancel = "raise",
    outbox: bool | str | None = None,
    tags: Sequence[str] = (),
    **options: object,
) -> Any:
    """Make a function of a module a task, as ``@task`` or ``@task(queue_name="mail")``.

    It is a task of ``django.tasks``, which is part of Django 6.0; Django 5.2 needs the package ``django-tasks``.
    ``takes_context`` and ``backend`` are options of the framework. Results are stored unless ``store_result`` is False.

    A job has ``max_attempts`` attempts (1 to 1000; by default the option ``MAX_ATTEMPTS``). By default the waits
    between them grow and are random. ``backoff`` sets them: seconds, a sequence of seconds whose last item repeats, or
    a function of the exception and the result that returns seconds, or None to end the retries. After ``timeout``
    seconds (None: never) TaskTimeout is raised inside the task; a call into C code notices when it returns. A running
    job that is cancelled gets Cancelled in the same way; with ``on_cancel="flag"`` only ``cancelled()`` returns True. A
    job that could not begin within ``expires`` seconds, or a timedelta, after it was due does not run; its error is
    Expired. Ready jobs with a higher ``priority`` (-100 to 100) start first.

    With ``outbox=True``, or the alias of a database, a call is stored in that database, in the transaction in which it
    is enqueued, until Redis has it; see the option ``OUTBOX``.

    ``tags`` are up to five texts of 1 to 40 bytes, such as ``["billing"]``, by which the page of jobs and ``rk_jobs``
    find the task's jobs. They cost nothing on the server.

    With ``unique=True`` a call has one job while it waits or runs, with "queued" until it starts, and with seconds or a
    timedelta for that time, whatever its outcome. A further enqueue() returns the result of that job; with
    ``replace=True`` it first replaces the arguments, priority and time of a waiting job. Two calls are the same if all
    arguments are equal, or those in the tuple ``unique_by``, or the texts that ``unique_by(*args, **kwargs)`` returns.

    ``options`` are those that features of the queues bring, such as ``at_most_once``.
    """
    named = {name: value for name, value in locals().items() if name not in ("func", "options")}
    more = of_features(options, named, inspect.signature(Task.using).parameters)

    def made(function: Callable[..., Any]) -> Task[..., Any]:
        check_function(function)
        # Django 6.0 has no default for run_after.
        defined: Task[..., Any] = Task(func=function, run_after=None, **named, options=more, plain_json=False)
        registry.register(defined)
        return defined

    if func is None:
        return made
    if isinstance(func, str):
        raise InvalidTask(f"The text {shortened(func)} can't be a task. Write @task(queue_name={shortened(func)}).")
    return made(func)
