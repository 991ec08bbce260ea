"""How a task's call gets into its queue."""

from collections.abc import Callable
from typing import Any, NamedTuple

from django.db import transaction

from redis_kit.core.flow import Flow
from redis_kit.queues import validation
from redis_kit.queues.jobs import ids, message
from redis_kit.queues.queue import Queue
from redis_kit.queues.store import enqueue as flows
from redis_kit.queues.tasks import expiry, signature, unique
from redis_kit.queues.tasks.handle import Handle
from redis_kit.queues.tasks.task import BadArguments, Task
from redis_kit.queues.tasks.unique import Placed, Wish


class Packed(NamedTuple):
    """A call as it is sent: its body and, where it is unique, the key."""

    body: bytes
    wish: Wish | None


def enqueue(task: Task[..., Any], args: Any, kwargs: Any) -> Handle:
    """Add a job that stores no result. One round trip."""
    handle, call = Handle(ids.new_call(task.queue_name), task.queue_name), packed(task, args, kwargs)
    after_commit(task, lambda: settle(handle, send(task, handle.id, call)))
    return handle


async def aenqueue(task: Task[..., Any], args: Any, kwargs: Any) -> Handle:
    """See enqueue()."""
    handle, call = Handle(ids.new_call(task.queue_name), task.queue_name), packed(task, args, kwargs)
    settle(handle, await asend(task, handle.id, call))
    return handle


def packed(task: Task[..., Any], args: Any, kwargs: Any) -> Packed:
    """Return a call as it is sent. Raises BadArguments, NotSerializable, PayloadTooLarge, InvalidValue."""
    given = (None, *args) if task.takes_context else args
    if wrong := signature.mismatch(task.func, given, kwargs):
        raise BadArguments(f"{task.module_path}{task.signature}: {wrong}.")
    body = message.dumps(task.module_path, args, kwargs, expires=expiry.milliseconds(task))
    return Packed(body, unique.asked_by(task, args, kwargs))


def after_commit(task: Task[..., Any], call: Callable[[], None], *, waits: bool = True) -> None:
    """Make a call now, or after the commit of the transaction, where there is one and the task waits for it."""
    if waits and task.enqueue_on_commit and transaction.get_connection().in_atomic_block:
        transaction.on_commit(call)
    else:
        call()


def settle(result: Any, placed: Placed) -> None:
    """Note in what enqueue() returned which job there is."""
    object.__setattr__(result, "id", placed.id)
    object.__setattr__(result, "created", placed.created)


def send(task: Task[..., Any], id: str, call: Packed) -> Placed:
    """Add a job and return which one there is. One round trip."""
    queue = Queue(task.queue_name)
    placed: Placed = queue._run(_put(queue, task, (id, call.body), call.wish))
    queue._placed(placed)
    return placed


async def asend(task: Task[..., Any], id: str, call: Packed) -> Placed:
    """See send()."""
    queue = Queue(task.queue_name)
    placed: Placed = await queue._arun(_put(queue, task, (id, call.body), call.wish))
    await queue._aplaced(placed)
    return placed


def _put(queue: Queue, task: Task[..., Any], job: tuple[str, bytes], wish: Wish | None) -> Flow[Placed]:
    if task.run_after is not None:
        return flows.put_one(queue, job, wish, due=validation.moment(task.run_after), priority=task.priority)
    return flows.put_one(queue, job, wish, delay=task._delay or 0, priority=task.priority)
