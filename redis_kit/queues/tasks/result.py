"""Results of calls, as ``django.tasks`` has them. Imports no Redis client until a result is read."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, NoReturn

from redis_kit.core.text import shortened
from redis_kit.queues import framework
from redis_kit.queues.engine import payload
from redis_kit.queues.errors import NoResult, NotSerializable, PayloadTooLarge
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
        renew(self, self.task.get_backend().get_result(self.id))

    async def arefresh(self) -> None:
        """See refresh()."""
        renew(self, await self.task.get_backend().aget_result(self.id))

    def wait_until_finished(self, timeout: float) -> bool:
        """Wait until the call has ended, for at most ``timeout`` seconds. Return whether it has; refresh the result.

        The worker wakes the callers that wait; there is no polling. Raises TaskResultDoesNotExist. One round trip if
        the call has ended before, else three, and two more every 5 s.
        """
        renew(self, self.task.get_backend().wait_until_finished(self.id, timeout))  # type: ignore[attr-defined]
        return self.is_finished

    async def await_until_finished(self, timeout: float) -> bool:
        """See wait_until_finished()."""
        renew(self, await self.task.get_backend().await_until_finished(self.id, timeout))  # type: ignore[attr-defined]
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


def renew(result: Any, read: Any) -> None:
    """Give a result what was read of it."""
    for field in dataclasses.fields(read):
        if field.name not in ("task", "created"):
            object.__setattr__(result, field.name, getattr(read, field.name))


def dump_value(returned: Any) -> tuple[Any, bytes]:
    """Return a return value in JSON's types, and as JSON. Raises NotSerializable and PayloadTooLarge."""
    if returned is None:  # most tasks
        return None, b"null"
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
