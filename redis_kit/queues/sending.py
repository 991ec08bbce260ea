"""How a task's call gets into its queue."""

from collections.abc import Callable
from typing import Any

from django.db import transaction

from redis_kit.core.flow import Flow
from redis_kit.queues import arguments, flows, identity, message
from redis_kit.queues.queue import Queue
from redis_kit.queues.tasks import BadArguments, Handle, Task


def enqueue(task: Task[..., Any], args: Any, kwargs: Any) -> Handle:
    """Add a job that stores no result. One round trip."""
    job = identity.new_call(task.queue_name), body(task, args, kwargs)
    after_commit(task, lambda: send(task, job))
    return Handle(job[0], task.queue_name)


async def aenqueue(task: Task[..., Any], args: Any, kwargs: Any) -> Handle:
    """See enqueue()."""
    job = identity.new_call(task.queue_name), body(task, args, kwargs)
    await asend(task, job)
    return Handle(job[0], task.queue_name)


def body(task: Task[..., Any], args: Any, kwargs: Any) -> bytes:
    """Return a call as it is stored. Raises BadArguments, NotSerializable and PayloadTooLarge."""
    try:
        task.signature.bind(*((None, *args) if task.takes_context else args), **kwargs)
    except TypeError as error:
        raise BadArguments(f"{task.module_path}{task.signature}: {error}.") from None
    return message.dumps(task.module_path, args, kwargs)


def after_commit(task: Task[..., Any], call: Callable[[], None], *, waits: bool = True) -> None:
    """Make a call now, or after the commit of the transaction, where there is one and the task waits for it."""
    if waits and task.enqueue_on_commit and transaction.get_connection().in_atomic_block:
        transaction.on_commit(call)
    else:
        call()


def send(task: Task[..., Any], job: tuple[str, bytes]) -> None:
    """Add a job of which id and body are known. One round trip."""
    queue = Queue(task.queue_name)
    queue._announce(queue._run(_put(queue, task, job)))


async def asend(task: Task[..., Any], job: tuple[str, bytes]) -> None:
    """See send()."""
    queue = Queue(task.queue_name)
    await queue._aannounce(await queue._arun(_put(queue, task, job)))


def _put(queue: Queue, task: Task[..., Any], job: tuple[str, bytes]) -> Flow[Any]:
    if task.run_after is not None:
        return flows.put(queue, [job], due=arguments.moment(task.run_after), priority=task.priority)
    return flows.put(queue, [job], delay=task.delay or 0, priority=task.priority)
