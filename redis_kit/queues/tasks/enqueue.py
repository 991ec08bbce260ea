"""Adds the calls of tasks to their queues."""

import gc
import inspect
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import lru_cache, partial
from typing import Any, NamedTuple

from asgiref.sync import sync_to_async
from django.db import transaction

from redis_kit.core import conf
from redis_kit.core.errors import RedisFailure, RedisKitError
from redis_kit.core.flow import Flow
from redis_kit.core.gather import gather
from redis_kit.core.logs.error_text import text_of
from redis_kit.core.settings import KitSettings
from redis_kit.core.values.sequences import batched
from redis_kit.queues import signals, validation
from redis_kit.queues.engine import enqueue as flows
from redis_kit.queues.engine import ids, message
from redis_kit.queues.engine.feature import call_context, has, provided
from redis_kit.queues.engine.message import Extra
from redis_kit.queues.engine.spread import spread
from redis_kit.queues.engine.unique import PutResult, UniqueKey, key_of_call
from redis_kit.queues.errors import InvalidArguments
from redis_kit.queues.framework import heard, task_enqueued
from redis_kit.queues.queue import Queue
from redis_kit.queues.settings import QueueSettings
from redis_kit.queues.tasks import expiry, middleware, registry
from redis_kit.queues.tasks.options import OPTIONS_OF_A_CALL, outbox_of
from redis_kit.queues.tasks.result import EnqueuedJob, RedisTaskResult
from redis_kit.queues.tasks.task import Task, arguments

logger = logging.getLogger("redis_kit")
Make = Callable[[Sequence[str], Sequence[Any], Sequence[Any]], Iterable[Any]]
_queue = lru_cache(maxsize=1000)(Queue)  # by name: it holds no connection
MANY = 1000  # calls in one round trip
LOST = (
    "The transaction was committed, but %s was not enqueued: %s Enqueue it again. With an outbox, calls stay in the "
    "database until Redis has them."
)


class PackedCall(NamedTuple):
    """A call as it is stored: the body of its job and, for a unique task, the key."""

    body: bytes
    key: UniqueKey | None
    lane: str = ""


class NewCall(NamedTuple):
    """One of many calls that are on their way: the id of its job, the call, and its result."""

    id: str
    call: PackedCall
    result: Any


def _plain_calls(new: Sequence[NewCall]) -> Iterable[PackedCall]:
    return (each.call for each in new)


def _note_each(pairs: Sequence[tuple[NewCall, PutResult]]) -> Flow[None]:
    yield from ()
    for each, put in pairs:
        note(each.result, put)


class Stages(NamedTuple):
    """What a backend does with many calls: ``stored`` returns them as they are stored, at the moment of sending.

    ``sent`` notes in the results of calls that were there before which jobs these are. ``backend`` is the sender of the
    framework's signals.
    """

    backend: type
    stored: Callable[[Sequence[NewCall]], Iterable[PackedCall]] = _plain_calls
    sent: Callable[[Sequence[tuple[NewCall, PutResult]]], Flow[None]] = _note_each


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
            text = f"{text_of(error).removesuffix('.')}."
            logger.error(LOST, self._described(), text, exc_info=not isinstance(error, RedisFailure))  # noqa: TRY400


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
    key = None if task.unique is False else provided("unique_keys").key_of_call(task, args, kwargs)
    lane = lane_of_call(task, args, kwargs) if _may_have_lane(task) else ""
    return PackedCall(body_of(task, args, kwargs), key, lane)


def enqueue_many(task: Task[..., Any], calls: Iterable[Any], make: Make, stages: Stages, *, waits: bool) -> list[Any]:
    """Add jobs, after all calls were checked, and return what ``make`` returned. See send_many()."""
    calls, is_plain = list(calls), _is_plain(task)
    with _without_collector() if is_plain else nullcontext():
        new = _new_calls(task, calls, make, is_plain=is_plain)
        send_many(task, new, stages, waits=waits)
    return [each.result for each in new]


async def aenqueue_many(task: Task[..., Any], calls: Iterable[Any], make: Make, stages: Stages) -> list[Any]:
    """See enqueue_many(). The jobs are added now."""
    calls, is_plain = list(calls), _is_plain(task)
    with _without_collector() if is_plain else nullcontext():
        new = _new_calls(task, calls, make, is_plain=is_plain)
    await asend_many(task, new, stages)
    return [each.result for each in new]


def _is_plain(task: Task[..., Any]) -> bool:
    """Return whether a task uses nothing that packed() asks for at each call, and no receiver hears of its jobs."""
    rare = conf.section(KitSettings).TRACING or middleware.is_used() or _may_have_lane(task) or task.unique
    return not (rare or signals.job_enqueued.receivers or heard(task_enqueued, logging.DEBUG))


def _new_calls(task: Task[..., Any], calls: Sequence[Any], make: Make, *, is_plain: bool) -> list[NewCall]:
    """Return new calls, with what ``make`` returns for their ids, arguments and named arguments. All are checked."""
    conf.warn_unless_installed()
    dump = message.dumper(task.module_path, expires=expiry.milliseconds(task.expires), tags=tuple(task.tags))
    counts, context = registry.counts(task.func), int(task.takes_context)
    every_args, every_kwargs, every_call = list[Any](), list[Any](), list[PackedCall]()
    for place, each in enumerate(calls):
        try:
            args, kwargs = arguments(each)
            if not is_plain:
                call = packed(task, args, kwargs)
            else:
                if kwargs or len(args) + context not in counts:
                    check_call(task, args, kwargs)
                call = PackedCall(dump(args, kwargs), None)
        except RedisKitError as error:
            error.add_note(f"This is about calls[{place}]. Nothing was sent.")
            raise
        every_args.append(args)
        every_kwargs.append(kwargs)
        every_call.append(call)
    names = new_ids(task, every_call)
    return list(map(NewCall, names, every_call, make(names, every_args, every_kwargs)))


@contextmanager
def _without_collector() -> Iterator[None]:
    """Keep the garbage collector from looking at thousands of new objects, which all stay: half of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def body_of(task: Task[..., Any], args: Any, kwargs: Any, extra: Extra | None = None) -> bytes:
    """Return the message of a call, with the context of its span. Raises NotSerializable and PayloadTooLarge."""
    expires = 0 if task.expires is None else expiry.milliseconds(task.expires)
    trace = headers = None
    if conf.section(KitSettings).TRACING:
        trace = call_context(task)
    if conf.section(QueueSettings).MIDDLEWARE and (call := middleware.outgoing(task, args, kwargs)):
        args, kwargs, headers = call.args, call.kwargs, call.headers
    if not (extra or trace or headers):
        return message.dumper(task.module_path, expires=expires, tags=tuple(task.tags))(args, kwargs)
    return message.dumps(
        task.module_path, args, kwargs, expires=expires, extra=extra, trace=trace, tags=task.tags, headers=headers
    )


def new_id(task: Task[..., Any], call: PackedCall) -> str:
    """Return the id of a new job. It names the queue, or the shard of the queue that the call belongs to."""
    queue = task.queue_name
    if conf.section(QueueSettings).QUEUE_OPTIONS:
        queue = spread().place(queue, lane=call.lane, key=call.key) or queue
    return ids.new_call(queue)


def new_ids(task: Task[..., Any], calls: Sequence[PackedCall]) -> list[str]:
    """Return an id for each of these."""
    if conf.section(QueueSettings).QUEUE_OPTIONS:
        return [new_id(task, call) for call in calls]
    return ids.new_calls(task.queue_name, len(calls))


def check_call(task: Task[..., Any], args: Any, kwargs: Any) -> None:
    """Raise InvalidArguments if a task can't be called like that."""
    given = (None, *args) if task.takes_context else args
    if mismatch := registry.mismatch_of(task.func, given, kwargs):
        unknown = kwargs.keys() - task.signature.parameters.keys()
        hint = OPTIONS_OF_A_CALL if unknown & inspect.signature(Task.using).parameters.keys() else ""
        raise InvalidArguments(f"{task.module_path}{task.signature}: {mismatch}. {hint}".strip())


def lane_of_call(task: Task[..., Any], args: Any, kwargs: Any) -> str:
    """Return the lane of a call; "" without a group and limits. Raises InvalidValue."""
    if not _may_have_lane(task):
        return ""
    lane: str = provided("lanes").lane_of_call(task, args, kwargs)
    return lane


def _may_have_lane(task: Task[..., Any]) -> bool:
    own = task.group is not None or task.concurrency is not None or task.rate is not None or task.limits
    return bool(own or (conf.section(QueueSettings).QUEUE_OPTIONS and has("lanes")))


def described(task: Task[..., Any]) -> str:
    """Return a call as text: the task and the names of its arguments, but no values."""
    return f"{task.module_path}({', '.join(task.signature.parameters)})"


def waits_for_commit(task: Task[..., Any]) -> bool:
    """Return whether a call is to be sent after a commit. Only a transaction of the database ``default`` counts."""
    return task.enqueue_on_commit and transaction.get_connection().in_atomic_block


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
    alias = outbox_of(task) if task.outbox or conf.section(QueueSettings).OUTBOX else ""
    if alias:
        provided("transport").send(alias, task, id, call(), sent)
    elif waits and waits_for_commit(task):
        transaction.on_commit(WaitingCall(lambda: sent(put(task, id, call())), partial(described, task)))
    else:
        sent(put(task, id, call()))


def send_many(task: Task[..., Any], new: Sequence[NewCall], stages: Stages, *, waits: bool = True) -> None:
    """Send several calls of a task. One round trip for each 1,000; see send()."""
    alias = outbox_of(task)
    if not new:
        return
    if alias:
        provided("transport").send_many(alias, task, new, stages)
    elif waits and waits_for_commit(task):
        transaction.on_commit(WaitingCall(partial(_send_all, task, new, stages), partial(described, task)))
    else:
        _send_all(task, new, stages)


async def asend_many(task: Task[..., Any], new: Sequence[NewCall], stages: Stages) -> None:
    """See send_many(). The calls are sent now."""
    if outbox_of(task):
        await sync_to_async(send_many)(task, new, stages)
    elif new:
        added = await aput_many(task, zip((each.id for each in new), stages.stored(new), strict=True))
        await Queue(task.queue_name).arun_flow(_noted(new, added, stages))
        for result in _created(new):
            await task_enqueued.asend_robust(stages.backend, task_result=result)
        _raise_first(added)


def _send_all(task: Task[..., Any], new: Sequence[NewCall], stages: Stages) -> None:
    # An iterator: with lists of what lives for a moment, the garbage collector would take half of the time.
    added = put_many(task, zip((each.id for each in new), stages.stored(new), strict=True))
    note_all(task, new, added, stages)
    _raise_first(added)


def note_all(
    task: Task[..., Any], new: Sequence[NewCall], added: Sequence[PutResult | Exception], stages: Stages
) -> None:
    """Note in the results of calls which jobs there are, and tell the framework of those that were added."""
    Queue(task.queue_name).run_flow(_noted(new, added, stages))
    for result in _created(new):
        task_enqueued.send_robust(stages.backend, task_result=result)


def _noted(new: Sequence[NewCall], added: Sequence[PutResult | Exception], stages: Stages) -> Flow[None]:
    others = list[tuple[NewCall, PutResult]]()
    for each, put in zip(new, added, strict=True):
        if isinstance(put, PutResult):
            if put.created:
                object.__setattr__(each.result, "created", True)
            else:
                others.append((each, put))
    yield from stages.sent(others)


def _created(new: Sequence[NewCall]) -> list[RedisTaskResult]:
    """Return the results of which the framework is told."""
    if not heard(task_enqueued, logging.DEBUG):
        return []
    return [each.result for each in new if isinstance(each.result, RedisTaskResult) and each.result.created]


def _raise_first(added: Sequence[PutResult | Exception]) -> None:
    for put in added:
        if isinstance(put, Exception):
            raise put


def put_many(
    task: Task[..., Any], calls: Iterable[tuple[str, PackedCall]], *, own: bool = False
) -> list[PutResult | Exception]:
    """Add jobs and return for each which one there is, or why it was not added. One round trip for each 1,000."""
    queue, added = Queue(task.queue_name), list[PutResult | Exception]()
    for chunk in batched(calls, MANY):
        added += queue.run_flow(_put_all(task, chunk, own))
    if signals.job_enqueued.receivers:
        signals.announce(Queue, task.queue_name, _created_ids(added))
    return added


async def aput_many(
    task: Task[..., Any], calls: Iterable[tuple[str, PackedCall]], *, own: bool = False
) -> list[PutResult | Exception]:
    """See put_many()."""
    queue, added = Queue(task.queue_name), list[PutResult | Exception]()
    for chunk in batched(calls, MANY):
        added += await queue.arun_flow(_put_all(task, chunk, own))
    if signals.job_enqueued.receivers:
        await signals.aannounce(Queue, task.queue_name, _created_ids(added))
    return added


def _created_ids(added: Sequence[PutResult | Exception]) -> list[str]:
    return [put.id for put in added if isinstance(put, PutResult) and put.created]


async def asend(task: Task[..., Any], id: str, call: PackedCall, sent: Callable[[PutResult], None]) -> bool:
    """Add a job now, and pass on which one there is; False if it stays in the outbox."""
    if alias := outbox_of(task):
        stored: bool = await provided("transport").asend(alias, task, id, call, sent)
        return stored
    sent(await aput(task, id, call))
    return True


def note(result: Any, added: PutResult) -> None:
    """Note in the value that enqueue() returned which job there is."""
    object.__setattr__(result, "id", added.id)
    object.__setattr__(result, "created", added.created)


def put(task: Task[..., Any], id: str, call: PackedCall, *, own: bool = False) -> PutResult:
    """Add a job and return which one there is; ``own`` if the id may have been sent before. One round trip."""
    queue = _queue(ids.queue_of(id))
    added: PutResult = queue.run_flow(_put(queue, task, id, call, own=own))
    if signals.job_enqueued.receivers and added.created:
        signals.announce(Queue, task.queue_name, [added.id])
    return added


async def aput(task: Task[..., Any], id: str, call: PackedCall, *, own: bool = False) -> PutResult:
    """See put()."""
    queue = _queue(ids.queue_of(id))
    added: PutResult = await queue.arun_flow(_put(queue, task, id, call, own=own))
    await signals.aannounce(Queue, task.queue_name, [added.id] if added.created else [])
    return added


def _put(
    queue: Queue, task: Task[..., Any], id: str, call: PackedCall, *, own: bool, again: bool = False
) -> Flow[PutResult]:
    options: dict[str, Any] = {"priority": task.priority, "own": own, "lane": call.lane, "again": again}
    if task.run_after is not None:
        options["due"] = validation.moment(task.run_after)
    if task.run_in is not None:
        options["delay"] = validation.milliseconds(task.run_in)
    return flows.put_one(queue, (id, call.body), call.key, **options)


def _put_all(task: Task[..., Any], calls: Sequence[tuple[str, PackedCall]], own: bool) -> Flow[list[Any]]:
    """Add jobs in one round trip: those without a unique key and a lane by one call for each queue or shard."""
    due = 0 if task.run_after is None else validation.moment(task.run_after)
    delay = 0 if task.run_in is None else validation.milliseconds(task.run_in)
    options: dict[str, Any] = {"delay": delay, "due": due, "priority": task.priority}
    if not (own or conf.section(QueueSettings).QUEUE_OPTIONS or _may_have_lane(task) or task.unique):
        jobs = [(id, call.body) for id, call in calls]
        try:
            return (yield from flows.put_batch(Queue(task.queue_name), jobs, **options))
        except Exception as error:
            return [error] * len(calls)
    plain = dict[str, list[int]]()
    steps, places = list[Flow[Any]](), list[list[int]]()
    for place, (id, call) in enumerate(calls):
        name = ids.queue_of(id)
        if call.key or call.lane:
            key = call.key or key_of_call(id)
            steps.append(_put(Queue(name), task, id, call._replace(key=key), own=own, again=not call.key))
            places.append([place])
        else:
            plain.setdefault(name, []).append(place)
    for name, chosen in plain.items():
        jobs = [(calls[place][0], calls[place][1].body) for place in chosen]
        steps.append(flows.put_batch(Queue(name), jobs, **options))
        places.append(chosen)
    added: list[Any] = [None] * len(calls)
    for chosen, put in zip(places, (yield from gather(steps, return_exceptions=True)), strict=True):
        for place, each in zip(chosen, put if isinstance(put, list) else [put] * len(chosen), strict=True):
            added[place] = each
    return added
