"""Adds the calls of tasks to their queues."""

import inspect
import logging
import math
from collections.abc import Callable
from functools import partial
from time import time
from typing import Any, NamedTuple

from asgiref.sync import sync_to_async
from django.db import transaction

from redis_kit.core import conf
from redis_kit.core.errors import RedisFailure
from redis_kit.core.flow import Flow
from redis_kit.core.tracing import spans
from redis_kit.core.values.numbers import whole_number
from redis_kit.queues import signals, validation
from redis_kit.queues.database import outbox
from redis_kit.queues.database.outbox import OutboxCall
from redis_kit.queues.errors import InvalidArguments
from redis_kit.queues.jobs import ids, message
from redis_kit.queues.jobs.lane import Lane
from redis_kit.queues.jobs.shard import shard_for
from redis_kit.queues.jobs.step import StepCall
from redis_kit.queues.jobs.unique import PutResult, UniqueKey
from redis_kit.queues.queue import Queue
from redis_kit.queues.store import enqueue as flows
from redis_kit.queues.tasks import expiry, limits, signature, unique
from redis_kit.queues.tasks.options import outbox_of
from redis_kit.queues.tasks.result import EnqueuedJob
from redis_kit.queues.tasks.task import Task

logger = logging.getLogger("redis_kit")
OPTIONS_OF_A_CALL = "Options of a call belong in using(...)."
LOST = (
    "The transaction was committed, but %s was not enqueued: %s. Enqueue it again. With an outbox, calls stay in the "
    "database until Redis has them."
)


class PackedCall(NamedTuple):
    """A call as it is stored: the body of its job and, for a unique task, the key."""

    body: bytes
    key: UniqueKey | None
    lane: Lane | None = None


class WaitingCall:
    """A call that waits for the commit. Django's tests never commit, and keep the functions that they ran.

    ``described`` returns the call as text.
    """

    def __init__(self, action: Callable[[], None], described: Callable[[], str]) -> None:
        self._action, self._described, self.has_run = action, described, False

    def __call__(self) -> None:
        """Add the job of the call. Log errors: raised, they would keep Django from what else waits for the commit."""
        self.has_run = True
        try:
            self._action()
        except Exception as error:
            logger.error(LOST, self._described(), error, exc_info=not isinstance(error, RedisFailure))  # noqa: TRY400


def enqueue(task: Task[..., Any], args: Any, kwargs: Any) -> EnqueuedJob:
    """Add a job that stores no result. One round trip."""
    call = packed(task, args, kwargs)
    job = EnqueuedJob(new_id(task, call), task.queue_name)
    send(task, job.id, lambda: call, partial(note, job))
    return job


async def aenqueue(task: Task[..., Any], args: Any, kwargs: Any) -> EnqueuedJob:
    """See enqueue()."""
    call = packed(task, args, kwargs)
    job = EnqueuedJob(new_id(task, call), task.queue_name)
    await asend(task, job.id, call, partial(note, job))
    return job


def packed(task: Task[..., Any], args: Any, kwargs: Any) -> PackedCall:
    """Return a call as it is stored. Raises InvalidArguments, NotSerializable, PayloadTooLarge, InvalidValue."""
    conf.warn_unless_installed()
    check_call(task, args, kwargs)
    key, lane = unique.key_of_call(task, args, kwargs), limits.lane_of_call(task, args, kwargs)
    return PackedCall(body_of(task, args, kwargs), key, lane)


def body_of(task: Task[..., Any], args: Any, kwargs: Any, step: StepCall | None = None) -> bytes:
    """Return the message of a call, with the context of its span. Raises NotSerializable and PayloadTooLarge."""
    tracer = spans.tracer()
    trace = tracer.sent(task.module_path, task.queue_name) if tracer else None
    expires = expiry.milliseconds(task.expires)
    return message.dumps(task.module_path, args, kwargs, expires=expires, step=step, trace=trace, tags=task.tags)


def new_id(task: Task[..., Any], call: PackedCall) -> str:
    """Return the id of a new job. It names the queue, or the shard of the queue that the call belongs to."""
    return ids.new_call(shard_for(task.queue_name, lane=call.lane, key=call.key) or task.queue_name)


def check_call(task: Task[..., Any], args: Any, kwargs: Any) -> None:
    """Raise InvalidArguments if a task can't be called like that."""
    given = (None, *args) if task.takes_context else args
    if mismatch := signature.mismatch(task.func, given, kwargs):
        unknown = kwargs.keys() - task.signature.parameters.keys()
        hint = OPTIONS_OF_A_CALL if unknown & inspect.signature(Task.using).parameters.keys() else ""
        raise InvalidArguments(f"{task.module_path}{task.signature}: {mismatch}. {hint}".strip())


def described(task: Task[..., Any]) -> str:
    """Return a call as text: the task and the names of its arguments, but no values."""
    return f"{task.module_path}({', '.join(task.signature.parameters)})"


def after_commit(task: Task[..., Any], action: Callable[[], None], *, waits: bool = True) -> None:
    """Run an action now, or after the commit if there is a transaction and the task waits for it.

    Only a transaction of the database ``default`` counts.
    """
    if waits and task.enqueue_on_commit and transaction.get_connection().in_atomic_block:
        transaction.on_commit(WaitingCall(action, partial(described, task)))
    else:
        action()


def send(
    task: Task[..., Any],
    id: str,
    call: Callable[[], PackedCall],
    sent: Callable[[PutResult], None],
    *,
    waits: bool = True,
) -> None:
    """Add a job now, or after the commit, and pass on which one there is then. ``call`` is called when it is stored.

    A task with an outbox has it stored at once in its database. While Redis is unavailable it stays there, as does a
    call that replaces one which is still there.
    """
    alias = outbox_of(task)
    if not alias:
        after_commit(task, lambda: sent(put(task, id, call())), waits=waits)
        return
    stored = call()
    key = stored.key or outbox.key_of(id)
    number = outbox.store(alias, _outbox_call(task, id, stored, key))

    def send_stored() -> None:
        if outbox.has_older(alias, number, key):
            return
        try:
            added = put(task, id, stored._replace(key=key), own=True)
        except RedisFailure as error:
            outbox.note_failure(alias, error)
            return
        outbox.note_sent(alias, number, stays=added.created and not stored.key)
        sent(added)

    transaction.on_commit(WaitingCall(send_stored, partial(described, task)), using=alias)


async def asend(task: Task[..., Any], id: str, call: PackedCall, sent: Callable[[PutResult], None]) -> bool:
    """Add a job now, and pass on which one there is; False if it stays in the outbox."""
    alias = outbox_of(task)
    if not alias:
        sent(await aput(task, id, call))
        return True
    key = call.key or outbox.key_of(id)
    number = await sync_to_async(outbox.store)(alias, _outbox_call(task, id, call, key))
    if key.replace and await sync_to_async(outbox.has_older)(alias, number, key):
        return False
    try:
        added = await aput(task, id, call._replace(key=key), own=True)
    except RedisFailure as error:
        outbox.note_failure(alias, error)
        return False
    await sync_to_async(outbox.note_sent)(alias, number, stays=added.created and not call.key)
    sent(added)
    return True


def _outbox_call(task: Task[..., Any], id: str, call: PackedCall, key: UniqueKey) -> OutboxCall:
    due = 0 if task.run_after is None else validation.moment(task.run_after)
    if task.run_in is not None:
        due = math.ceil(time() * 1000) + validation.milliseconds(task.run_in)
    whole_number("priority", task.priority, validation.PRIORITY)
    return OutboxCall(ids.queue_of(id), id, call.body, key, task.priority, due, call.lane)


def note(result: Any, added: PutResult) -> None:
    """Note in the value that enqueue() returned which job there is."""
    object.__setattr__(result, "id", added.id)
    object.__setattr__(result, "created", added.created)


def put(task: Task[..., Any], id: str, call: PackedCall, *, own: bool = False) -> PutResult:
    """Add a job and return which one there is; ``own`` if the id may have been sent before. One round trip."""
    queue = Queue(ids.queue_of(id))
    added: PutResult = queue.run_flow(_put(queue, task, id, call, own=own))
    signals.announce(Queue, task.queue_name, [added.id] if added.created else [])
    return added


async def aput(task: Task[..., Any], id: str, call: PackedCall, *, own: bool = False) -> PutResult:
    """See put()."""
    queue = Queue(ids.queue_of(id))
    added: PutResult = await queue.arun_flow(_put(queue, task, id, call, own=own))
    await signals.aannounce(Queue, task.queue_name, [added.id] if added.created else [])
    return added


def _put(queue: Queue, task: Task[..., Any], id: str, call: PackedCall, *, own: bool) -> Flow[PutResult]:
    options: dict[str, Any] = {"priority": task.priority, "own": own, "lane": call.lane}
    if task.run_after is not None:
        options["due"] = validation.moment(task.run_after)
    return flows.put_one(queue, (id, call.body), call.key, delay=task.run_in or 0, **options)
