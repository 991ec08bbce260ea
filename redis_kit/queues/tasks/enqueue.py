"""Adds the calls of tasks to their queues."""

from collections.abc import Callable
from typing import Any, NamedTuple

from django.db import transaction

from redis_kit.core import conf
from redis_kit.core.flow import Flow
from redis_kit.queues import hints, signals, validation
from redis_kit.queues.errors import InvalidArguments
from redis_kit.queues.jobs import ids, message
from redis_kit.queues.jobs.unique import PutResult, UniqueKey
from redis_kit.queues.queue import Queue
from redis_kit.queues.store import enqueue as flows
from redis_kit.queues.tasks import expiry, signature, unique
from redis_kit.queues.tasks.result import EnqueuedJob
from redis_kit.queues.tasks.task import Task


class PackedCall(NamedTuple):
    """A call as it is stored: the body of its job and, for a unique task, the key."""

    body: bytes
    key: UniqueKey | None


class WaitingCall:
    """A call that waits for the commit. Django's tests never commit, and keep the functions that they ran."""

    def __init__(self, action: Callable[[], None]) -> None:
        self._action, self.has_run = action, False

    def __call__(self) -> None:
        """Add the job of the call."""
        self.has_run = True
        self._action()


def enqueue(task: Task[..., Any], args: Any, kwargs: Any) -> EnqueuedJob:
    """Add a job that stores no result. One round trip."""
    job, call = EnqueuedJob(ids.new_call(task.queue_name), task.queue_name), packed(task, args, kwargs)
    after_commit(task, lambda: note(job, put(task, job.id, call)))
    return job


async def aenqueue(task: Task[..., Any], args: Any, kwargs: Any) -> EnqueuedJob:
    """See enqueue()."""
    job, call = EnqueuedJob(ids.new_call(task.queue_name), task.queue_name), packed(task, args, kwargs)
    note(job, await aput(task, job.id, call))
    return job


def packed(task: Task[..., Any], args: Any, kwargs: Any) -> PackedCall:
    """Return a call as it is stored. Raises InvalidArguments, NotSerializable, PayloadTooLarge, InvalidValue."""
    conf.warn_unless_installed()
    given = (None, *args) if task.takes_context else args
    if mismatch := signature.mismatch(task.func, given, kwargs):
        hint = hints.of_arguments(kwargs.keys() - task.signature.parameters.keys(), hints.CALL)
        raise InvalidArguments(f"{task.module_path}{task.signature}: {mismatch}. {hint and f'{hint}.'}".strip())
    body = message.dumps(task.module_path, args, kwargs, expires=expiry.milliseconds(task.expires))
    return PackedCall(body, unique.key_of_call(task, args, kwargs))


def after_commit(task: Task[..., Any], action: Callable[[], None], *, waits: bool = True) -> None:
    """Run an action now, or after the commit if there is a transaction and the task waits for it."""
    if waits and task.enqueue_on_commit and transaction.get_connection().in_atomic_block:
        transaction.on_commit(WaitingCall(action))
    else:
        action()


def note(result: Any, added: PutResult) -> None:
    """Note in the value that enqueue() returned which job there is."""
    object.__setattr__(result, "id", added.id)
    object.__setattr__(result, "created", added.created)


def put(task: Task[..., Any], id: str, call: PackedCall) -> PutResult:
    """Add a job and return which one there is. One round trip."""
    queue = Queue(task.queue_name)
    added: PutResult = queue.run_flow(_put(queue, task, (id, call.body), call.key))
    if added.created and signals.job_enqueued.receivers:
        signals.job_enqueued.send_robust(Queue, queue=queue.name, id=added.id)
    return added


async def aput(task: Task[..., Any], id: str, call: PackedCall) -> PutResult:
    """See put()."""
    queue = Queue(task.queue_name)
    added: PutResult = await queue.arun_flow(_put(queue, task, (id, call.body), call.key))
    if added.created and signals.job_enqueued.receivers:
        await signals.job_enqueued.asend_robust(Queue, queue=queue.name, id=added.id)
    return added


def _put(queue: Queue, task: Task[..., Any], job: tuple[str, bytes], key: UniqueKey | None) -> Flow[PutResult]:
    if task.run_after is not None:
        return flows.put_one(queue, job, key, due=validation.moment(task.run_after), priority=task.priority)
    return flows.put_one(queue, job, key, delay=task.run_in or 0, priority=task.priority)
