"""Results of calls: how they are stored with new calls, read and awaited."""

import dataclasses
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import repeat
from time import monotonic
from typing import Any

from django.utils import timezone

from redis_kit.core.errors import RedisFailure
from redis_kit.core.flow import Flow
from redis_kit.core.gather import gather
from redis_kit.core.logs.error_text import path_of
from redis_kit.core.primitive import Primitive
from redis_kit.core.steps import Pop
from redis_kit.core.values.numbers import seconds
from redis_kit.queues import validation
from redis_kit.queues.engine import history, message, payload
from redis_kit.queues.engine.history import History
from redis_kit.queues.engine.job import Job, read
from redis_kit.queues.engine.message import Message
from redis_kit.queues.errors import CorruptMessage, WorkerLost
from redis_kit.queues.features.results.store import get_result
from redis_kit.queues.framework import TaskError, TaskResultDoesNotExist, TaskResultStatus
from redis_kit.queues.keys import of_one
from redis_kit.queues.settings import whole
from redis_kit.queues.tasks import progress as stored_progress
from redis_kit.queues.tasks import registry
from redis_kit.queues.tasks.enqueue import Enqueuer, NewCall, PackedCall
from redis_kit.queues.tasks.options import copy
from redis_kit.queues.tasks.result import RedisTaskResult, renew

AGAIN = 5.0  # seconds until a lost wake-up is noticed
WAITING = (b"READY", b"RUNNING")


class ResultEnqueuer(Enqueuer):
    """Enqueues calls whose results are stored, with the history of their jobs."""

    has_results = True

    def result(self, id: str, args: Any, kwargs: Any) -> RedisTaskResult:
        """See Enqueuer."""
        return _result(self.original, id, Message(self.original.module_path, args, kwargs), TaskResultStatus.READY)

    def results(self, ids: Sequence[str], every_args: Sequence[Any], every_kwargs: Sequence[Any]) -> list[Any]:
        """See Enqueuer."""
        model = self.result("", (), {})
        fields: dict[str, Iterable[Any]] = {
            "id": ids,
            "args": map(list, every_args),
            "kwargs": every_kwargs,
            "errors": map(list, repeat(())),
            "worker_ids": map(list, repeat(())),
            "_return_value": repeat(None),
        }
        for name in {field.name for field in dataclasses.fields(model)}.difference(fields, vars(model)):
            fields[name] = repeat(getattr(model, name))
        results = [object.__new__(RedisTaskResult) for _ in ids]
        # One field of all results at a time takes a third of the time of object.__setattr__(); a result has thirteen.
        for name, values in fields.items():
            deque(map(getattr(RedisTaskResult, name).__set__, results, values), maxlen=0)
        if getattr(self.original, "plain_json", True):
            for result in results:
                result.__post_init__()
        return results

    def stored(self, new: Sequence[NewCall]) -> Iterator[PackedCall]:
        """See Enqueuer."""
        moment = timezone.now()
        before = history.line(moment, self.original.run_after, self.backend.alias)
        for _, (body, key, lane), result in new:
            object.__setattr__(result, "enqueued_at", moment)
            yield PackedCall(before + body, key, lane)

    def read(self, results: Sequence[Any]) -> Flow[None]:
        """See Enqueuer. One round trip. A result that can't be read now stays as it is."""
        finds = [get(self.backend.queue_of(result.id), result.id) for result in results]
        for result, answer in zip(results, (yield from gather(finds, return_exceptions=True)), strict=True):
            if isinstance(answer, RedisTaskResult):
                renew(result, answer)
            elif not isinstance(answer, (RedisFailure, TaskResultDoesNotExist)):
                raise answer


def get(queue: Primitive, id: str) -> Flow[RedisTaskResult]:
    """Read the result of a call of a queue. One round trip."""
    return _read(queue, id, (yield get_result(queue.key(""), id)))


def wait(queue: Primitive, id: str, timeout: float) -> Flow[RedisTaskResult]:
    """Read the result of a call when it has ended, or after ``timeout`` seconds."""
    deadline = monotonic() + seconds("timeout", timeout, validation.WAIT)
    while True:
        reply: list[Any] = yield get_result(queue.key(""), id, waits=True)
        left = deadline - monotonic()
        if reply[0] not in WAITING or left <= 0:
            return _read(queue, id, reply)
        yield Pop(of_one(queue.key(""), "finished", id), timeout=min(left, AGAIN))


def started(queue_name: str, job: Job, call: Message, about: History) -> RedisTaskResult:
    """Return the result of a call as its attempt begins. Errors of earlier attempts are not in it."""
    task = _rebuilt(registry.find(call.task), queue_name, job.priority, about)
    return _result(task, job.id, call, TaskResultStatus.RUNNING, about=about)


def finish(result: RedisTaskResult, status: TaskResultStatus, moment: datetime) -> None:
    """Note in a result that the call has ended; not before it began, even if the clocks of two machines differ."""
    object.__setattr__(result, "status", status)
    object.__setattr__(result, "finished_at", max(filter(None, (moment, result.enqueued_at, result.last_attempted_at))))


def _read(queue: Primitive, id: str, reply: list[Any]) -> RedisTaskResult:
    """Return the result in a reply. Raises TaskResultDoesNotExist, UnknownTask, and CorruptMessage if it is damaged."""
    with _readable(queue, id):
        status, at, record, reason, parts = reply
        stored = read(record)
        about = history.read(stored.history)
        if not status or about is None:
            raise TaskResultDoesNotExist(
                f"There is no result {id}: its transaction is not committed yet, it has expired, or a sink handed the "
                "job over to another system."
            )
        fields = dict(zip(parts[::2], parts[1::2], strict=True))
        call = message.loads(stored.body)
    task = _rebuilt(registry.discovered(call.task), queue.name, stored.priority, about)
    with _readable(queue, id):
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
def _readable(queue: Primitive, id: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        text = f"The result of call {id!a} is damaged: something else wrote to the key"
        key = queue.key(f"result:{id}")
        raise CorruptMessage(f"{text} {key!a}, or to the job. {type(error).__name__}: {error}"[:500]) from error


def _errors(fields: dict[bytes, bytes]) -> list[TaskError]:
    numbered = sorted((int(name[5:]), name) for name in fields if name.startswith(b"error"))
    names = [name for _, name in numbered] + [b"cancelled"] * (b"cancelled" in fields)
    pairs = [payload.loads_error(fields[name]) for name in names]
    return [TaskError(exception_class_path=path, traceback=text) for path, text in pairs]


def _result(
    task: Any, id: str, call: Message, status: TaskResultStatus, *, about: History | None = None, errors: Any = ()
) -> RedisTaskResult:
    begun = about.begun if about else []
    return RedisTaskResult(
        task=task,
        id=id,
        status=status,
        enqueued_at=about and about.enqueued_at,
        started_at=begun[0] if begun else None,
        last_attempted_at=begun[-1] if begun else None,
        finished_at=None,
        args=call.args,
        kwargs=call.kwargs,
        backend=task.backend,
        errors=list(errors),
        worker_ids=about.workers if about else [],
    )


def _rebuilt(task: Any, queue_name: str, priority: int, about: History) -> Any:
    return copy(task, priority=priority, queue_name=whole(queue_name), backend=about.backend, run_after=about.run_after)
