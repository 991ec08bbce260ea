"""The backend of ``django.tasks``: tasks become jobs in queues, and ``rk_worker`` runs them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.core.checks import CheckMessage

from redis_kit.core import conf
from redis_kit.core.conf import Section
from redis_kit.core.errors import ConfigurationError, InvalidName, InvalidValue
from redis_kit.core.flow import Flow, operation, twin
from redis_kit.core.text import did_you_mean
from redis_kit.queues import validation
from redis_kit.queues.engine import feature, ids
from redis_kit.queues.errors import UnlistedQueue
from redis_kit.queues.framework import BaseTaskBackend, TaskResultDoesNotExist, task_backends
from redis_kit.queues.settings import QueueSettings
from redis_kit.queues.tasks import registry
from redis_kit.queues.tasks.options import check_function, check_options
from redis_kit.queues.tasks.result import RedisTaskResult
from redis_kit.queues.tasks.task import Task, extended

if TYPE_CHECKING:
    from redis_kit.queues.queue import Queue
    from redis_kit.queues.tasks.enqueue import Enqueuer


@dataclass(frozen=True)
class BackendOptions(Section):
    """The options of the backend: ``TASKS["default"]["OPTIONS"]``."""

    ranges = QueueSettings.ranges

    #: Whether tasks wait for the commit of the transaction in which they are enqueued.
    ENQUEUE_ON_COMMIT: bool = True
    #: Overrides the option of this name in ``REDIS_KIT["QUEUES"]``.
    RESULT_TTL: float | None = None
    #: Overrides the option of this name in ``REDIS_KIT["QUEUES"]``.
    FAILED_RESULT_TTL: float | None = None


@dataclass(frozen=True)
class BackendEntry(Section):
    """The options beside those: ``TASKS["default"]``."""

    examples = {"QUEUES": 'Write "QUEUES": [] to allow every queue, or list the names.'}

    BACKEND: Any = ""
    #: The queues that tasks may have; empty for any queue.
    QUEUES: list[str] | tuple[str, ...] | set[str] = ("default",)
    OPTIONS: dict[str, Any] = field(default_factory=dict)


def _over(using: str) -> "Queue":
    from redis_kit.queues.queue import over

    return over(using)


class RedisTaskBackend(BaseTaskBackend):
    """A task backend. Holds no connection: threads may share it. Its class is the sender of the framework's signals."""

    task_class = Task
    supports_defer = True
    supports_delay = True  # a time from now on, on the server's clock
    supports_async_task = True
    supports_get_result = True
    supports_priority = True
    sink = ""  # the system that runs the jobs, "" for rk_worker

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        # The framework would raise a TypeError that names no setting. So any queue is allowed until the first call,
        # which raises what the check reports.
        wrong = any(conf.mismatches(BackendEntry, "", {"QUEUES": params["QUEUES"]})) if "QUEUES" in params else False
        super().__init__(alias, {**params, "QUEUES": []} if wrong else params)
        self._entry = params

    def validate_task(self, task: Any) -> None:
        """Raise InvalidTask, InvalidName or InvalidValue unless a worker can run the task."""
        if self.queues and task.queue_name not in self.queues:
            raise self._unlisted(task.queue_name)
        super().validate_task(task)
        if not isinstance(task, Task) or task.plain_json:
            check_function(task.func)
            check_options(extended(task))
        registry.notice(task)

    def enqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
        """Add a job, in a transaction after its commit, and return the result of the call.

        One round trip, and another one if an older job has the unique key of the call.
        """
        return self._enqueuer(task).enqueue(args, kwargs)

    async def aenqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
        """See enqueue(). The job is added now: Django has no transactions in asynchronous code."""
        return await self._enqueuer(task).aenqueue(args, kwargs)

    def enqueue_many(self, task: Any, calls: Iterable[Any]) -> list[Any]:
        """Add a job for each call. See Task.enqueue_many()."""
        return self._enqueuer(task).enqueue_many(calls)

    async def aenqueue_many(self, task: Any, calls: Iterable[Any]) -> list[Any]:
        """See enqueue_many(). The jobs are added now."""
        return await self._enqueuer(task).aenqueue_many(calls)

    @operation(over=_over)
    def get_result(self, result_id: str) -> Flow[RedisTaskResult]:
        """Return the result of a call. One round trip.

        Raises TaskResultDoesNotExist, also for an expired result, UnknownTask, and CorruptMessage if another program
        wrote to the result.
        """
        flow: Flow[RedisTaskResult] = feature.provided("results").get(self.queue_of(result_id), result_id)
        return flow

    @operation(over=_over)
    def wait_until_finished(self, result_id: str, timeout: float) -> Flow[RedisTaskResult]:
        """Return the result of a call when it has ended, or after ``timeout`` seconds. See RedisTaskResult."""
        flow: Flow[RedisTaskResult] = feature.provided("results").wait(self.queue_of(result_id), result_id, timeout)
        return flow

    @operation(over=_over)
    def cancel(self, result_id: str) -> Flow[bool]:
        """Cancel a call. Return False if it has already ended. See RedisTaskResult.cancel()."""
        from redis_kit.queues.management import manage

        return bool((yield from manage.cancel(self.queue_of(result_id), result_id, self.result_ttl_ms(failed=True))))

    def result_ttl_ms(self, *, failed: bool) -> int:
        """Return for how many ms results are stored."""
        name = "FAILED_RESULT_TTL" if failed else "RESULT_TTL"
        seconds = getattr(self.chosen, name) or getattr(conf.section(QueueSettings), name)
        return int(seconds * 1000)

    @cached_property
    def chosen(self) -> BackendOptions:
        """Return the options. Raises ConfigurationError for a wrong option."""
        for message in self.problems():
            raise ConfigurationError(f"{message.msg} {message.hint or ''}".strip())
        return BackendOptions(**self.options)

    def check(self, **kwargs: Any) -> list[CheckMessage]:
        """Return the problems of the entry, for ``manage.py check``; none if the check of the kit reports them.

        Django runs this check only if the framework was imported before the checks began.
        """
        return [] if apps.is_installed("redis_kit") else list(self.problems())

    def problems(self) -> Iterator[CheckMessage]:
        """Yield the problems of the backend's entry in ``TASKS``."""
        where = f"TASKS['{self.alias}']"
        for problem in conf.mismatches(BackendEntry, where, self._entry):
            yield problem.check_message
        if isinstance(self.options, Mapping):
            for problem in conf.mismatches(BackendOptions, f"{where}['OPTIONS']", self.options):
                yield problem.check_message

    def _unlisted(self, queue: str) -> UnlistedQueue:
        place, wrong = f"TASKS['{self.alias}']", f"Queue {queue!r} is not valid for backend."  # the framework's words
        if "QUEUES" in self._entry:
            wrong = f"{wrong} It is not in {place}['QUEUES']. {did_you_mean(queue, sorted(map(str, self.queues)))}"
            return UnlistedQueue(f'{wrong.strip()} Add it there, or write "QUEUES": [] to allow every queue.')
        wrong = f"{wrong} Without QUEUES, {place} has the queue 'default' only."
        for problem in conf.mismatches(BackendEntry, place, self._entry):
            return UnlistedQueue(f"{wrong} {problem.text}")
        return UnlistedQueue(f'{wrong} Add "QUEUES": [] there to allow every queue, or list the names.')

    def _enqueuer(self, task: Any) -> "Enqueuer":
        """Return what enqueues calls of a task. Raises what validate_task() does, and ConfigurationError."""
        from redis_kit.queues.tasks.enqueue import Enqueuer

        _ = self.chosen  # raises for a wrong option
        # If any queue is allowed, a task that was valid when it was defined still is.
        if self.queues or not isinstance(task, Task):
            self.validate_task(task)
        call = task if isinstance(task, Task) else extended(task)
        stores = call.store_result and feature.has("results")
        kind = feature.provided("results").ResultEnqueuer if stores else Enqueuer
        return kind(self, call, task)

    def queue_of(self, result_id: str) -> "Queue":
        """Return the queue of a job. Raises TaskResultDoesNotExist for an id that none has."""
        from redis_kit.queues.queue import Queue

        try:
            return Queue(ids.queue_of(validation.identifier("result_id", result_id)))
        except (InvalidName, InvalidValue) as error:
            raise TaskResultDoesNotExist(str(error)) from None

    aget_result = twin(get_result)  # type: ignore[arg-type]  # that of the framework is for any backend
    await_until_finished = twin(wait_until_finished)
    acancel = twin(cancel)


def sinks() -> dict[str, str]:
    """Return the sinks of the backends of this kind that ``TASKS`` names and that have one, by alias."""
    ours = [backend for backend in task_backends.all() if isinstance(backend, RedisTaskBackend)]
    return {backend.alias: backend.sink for backend in ours if backend.sink}
