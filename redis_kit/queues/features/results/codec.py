"""Results of calls in Redis: how they are made of what is stored, and what is stored of them."""

import dataclasses
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import repeat
from typing import Any

from redis_kit.core.logs.error_text import path_of
from redis_kit.queues.engine import history, message, payload
from redis_kit.queues.engine.history import History
from redis_kit.queues.engine.job import Job, read
from redis_kit.queues.engine.message import Message
from redis_kit.queues.errors import CorruptMessage, WorkerLost
from redis_kit.queues.framework import TaskError, TaskResultStatus
from redis_kit.queues.queue import Queue
from redis_kit.queues.settings import whole
from redis_kit.queues.tasks import progress as stored_progress
from redis_kit.queues.tasks import registry
from redis_kit.queues.tasks.options import copy
from redis_kit.queues.tasks.result import RedisTaskResult


def new(task: Any, id: str, args: Any, kwargs: Any) -> RedisTaskResult:
    """Return the result of a call that is about to be enqueued."""
    return _result(task, id, Message(task.module_path, args, kwargs), TaskResultStatus.READY)


def new_of_many(task: Any, ids: Sequence[str], every_args: Sequence[Any], every_kwargs: Iterable[Any]) -> list[Any]:
    """Return the results of calls of a task that are about to be enqueued."""
    model = new(task, "", (), {})
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
    # One field of all results at a time takes a third of the time of object.__setattr__(), and a result has thirteen.
    for name, values in fields.items():
        deque(map(getattr(RedisTaskResult, name).__set__, results, values), maxlen=0)
    if getattr(task, "plain_json", True):
        for result in results:
            result.__post_init__()
    return results


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
