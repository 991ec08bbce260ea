"""Adds the calls of tasks to their queues."""

import gc
import inspect
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import lru_cache, partial
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple

from asgiref.sync import sync_to_async
from django.db import transaction

from redis_kit.core import conf
from redis_kit.core.awaitables import sending
from redis_kit.core.errors import RedisFailure, RedisKitError
from redis_kit.core.flow import Flow
from redis_kit.core.gather import gather
from redis_kit.core.logs.error_text import text_of
from redis_kit.core.settings import KitSettings
from redis_kit.core.tracing import spans
from redis_kit.core.values.sequences import batched
from redis_kit.queues import signals, validation
from redis_kit.queues.engine import enqueue as flows
from redis_kit.queues.engine import ids, message
from redis_kit.queues.engine.calls import Turn
from redis_kit.queues.engine.feature import has, provided
from redis_kit.queues.engine.message import Extra
from redis_kit.queues.engine.spread import spread
from redis_kit.queues.engine.unique import PutResult, UniqueKey, key_of_call
from redis_kit.queues.errors import InvalidArguments
from redis_kit.queues.framework import heard, normalize_json, task_enqueued
from redis_kit.queues.queue import Queue
from redis_kit.queues.settings import QueueSettings
from redis_kit.queues.tasks import middleware, registry
from redis_kit.queues.tasks.options import OPTIONS_OF_A_CALL, expires_ms, outbox_of
from redis_kit.queues.tasks.result import EnqueuedJob
from redis_kit.queues.tasks.task import Task, arguments

logger = logging.getLogger("redis_kit")
Added = Sequence[PutResult | Exception]  # for each call which job there is now, or why it was not added
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


@dataclass
class Enqueuer:
    """Enqueues calls of a task that stores no result; a feature brings the subclass for other tasks.

    ``task`` is the task with the options of the kit, ``original`` the one that its caller has.
    """

    backend: Any
    task: Task[..., Any]
    original: Any
    has_results: ClassVar[bool] = False

    def result(self, id: str, args: Any, kwargs: Any) -> Any:
        """Return what the caller of enqueue() gets."""
        return EnqueuedJob(id, self.task.queue_name)

    def results(self, ids: Sequence[str], every_args: Sequence[Any], every_kwargs: Sequence[Any]) -> Iterable[Any]:
        """Return what result() returns for each of many calls."""
        return map(self.result, ids, every_args, every_kwargs)

    def stored(self, new: Sequence[NewCall]) -> Iterable[PackedCall]:
        """Return calls as they are stored, at the moment of sending."""
        return map(attrgetter("call"), new)

    def read(self, results: Sequence[Any]) -> Flow[None]:
        """Read the results of calls whose jobs were there before."""
        yield from ()

    def enqueue(self, args: Any, kwargs: Any) -> Any:
        """Add a job, in a transaction after its commit. One round trip, and another one to read an older result."""
        new = self._new_call(args, kwargs)
        self.send([new])
        return new.result

    async def aenqueue(self, args: Any, kwargs: Any) -> Any:
        """See enqueue(). The job is added now."""
        new = self._new_call(args, kwargs)
        await self._asend([new])
        return new.result

    def enqueue_many(self, calls: Iterable[Any]) -> list[Any]:
        """Add jobs, after all calls were checked. One round trip for each 1,000."""
        calls, is_plain = list(calls), self._is_plain()
        with _without_collector() if is_plain else nullcontext():
            if new := self._new_calls(calls, is_plain=is_plain):
                self.send(new, many=True)
        return [each.result for each in new]

    async def aenqueue_many(self, calls: Iterable[Any]) -> list[Any]:
        """See enqueue_many(). The jobs are added now."""
        calls, is_plain = list(calls), self._is_plain()
        with _without_collector() if is_plain else nullcontext():
            new = self._new_calls(calls, is_plain=is_plain)
        if new:
            await self._asend(new, many=True)
        return [each.result for each in new]

    def send(self, new: Sequence[NewCall], *, many: bool = False) -> None:
        """Add jobs now, or after the commit. Only a transaction of the database ``default`` counts.

        A task with an outbox has its calls stored at once in its database. While Redis is unavailable they stay there,
        as does a call that replaces one which is still there.
        """
        task = self.task
        waits = task.enqueue_on_commit and self.backend.chosen.ENQUEUE_ON_COMMIT
        if (task.outbox or conf.section(QueueSettings).OUTBOX) and (alias := outbox_of(task)):
            provided("transport").send(alias, self, new)
        elif waits and transaction.get_connection().in_atomic_block:
            transaction.on_commit(WaitingCall(partial(self._send_now, new, many), partial(described, task)))
        else:
            self._send_now(new, many)

    def _send_now(self, new: Sequence[NewCall], many: bool) -> None:
        raise_first(self.add(new, self.stored(new), many=many))

    async def _asend(self, new: Sequence[NewCall], *, many: bool = False) -> None:
        if outbox_of(self.task):
            await sync_to_async(self.send)(new, many=many)
        else:
            raise_first(await _queue(self.task.queue_name).arun_flow(self._add(new, self.stored(new), many=many)))

    def add(
        self, new: Sequence[NewCall], calls: Iterable[PackedCall], *, own: bool = False, many: bool = True
    ) -> Added:
        """Add the jobs of calls, given as they are stored. One round trip for each 1,000.

        ``own`` if they may have been sent before. Without ``many`` there is one call, whose error is raised.
        """
        added: Added = _queue(self.task.queue_name).run_flow(self._add(new, calls, own=own, many=many))
        return added

    def _add(
        self, new: Sequence[NewCall], calls: Iterable[PackedCall], *, own: bool = False, many: bool
    ) -> Flow[list[Any]]:
        """Add the jobs of calls, note in their results which jobs there are, and tell of those that are new."""
        task = self.task
        due = 0 if task.run_after is None else validation.moment(task.run_after)
        delay = 0 if task.run_in is None else validation.milliseconds(task.run_in)
        turn = Turn(due, delay, task.priority)
        added: list[Any] = []  # list[Any]() takes ten times as long
        existing: list[Any] = []
        if many:
            # Iterators: with lists of what lives for a moment, the garbage collector would take half of the time.
            for chunk in batched(zip(map(attrgetter("id"), new), calls, strict=True), MANY):
                added += yield from _put_many(chunk, turn, own=own)
        else:
            (id, _, _), (call,) = new[0], calls
            turn = turn._replace(lane=call.lane) if call.lane else turn
            added.append((yield from flows.put_one(_queue(ids.queue_of(id)), (id, call.body), call.key, turn)))
        for each, answer in zip(new, added, strict=True):
            if isinstance(answer, PutResult):
                object.__setattr__(each.result, "created", answer.created)
                if not answer.created:
                    object.__setattr__(each.result, "id", answer.id)
                    if not answer.replaced:
                        existing.append(each.result)
        if existing:
            yield from self.read(existing)
        if signals.job_enqueued.receivers:
            created = [answer.id for answer in added if isinstance(answer, PutResult) and answer.created]
            yield from signals.announcement(Queue, task.queue_name, created)
        if self.has_results and heard(task_enqueued, logging.DEBUG):
            for each in new:
                if each.result.created:
                    yield sending(task_enqueued, type(self.backend), task_result=each.result)
        return added

    def _is_plain(self) -> bool:
        """Return whether the task uses nothing that packed() asks for at each call, and nobody hears of its jobs."""
        task = self.task
        rare = conf.section(KitSettings).TRACING or middleware.hooks() or _may_have_lane(task) or task.unique
        return not (rare or task.plain_json or signals.job_enqueued.receivers or heard(task_enqueued, logging.DEBUG))

    def _new_call(self, args: Any, kwargs: Any) -> NewCall:
        call = packed(self.task, args, kwargs)
        id = new_id(self.task, call)
        return NewCall(id, call, self.result(id, args, kwargs))

    def _new_calls(self, calls: Sequence[Any], *, is_plain: bool) -> list[NewCall]:
        """Return new calls with their results. All are checked."""
        conf.warn_unless_installed()
        task = self.task
        dump = message.dumper(task.module_path, expires=expires_ms(task.expires), tags=tuple(task.tags))
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
        return list(map(NewCall, names, every_call, self.results(names, every_args, every_kwargs)))


def packed(task: Task[..., Any], args: Any, kwargs: Any) -> PackedCall:
    """Return a call as it is stored. Raises InvalidArguments, NotSerializable, PayloadTooLarge, InvalidValue."""
    conf.warn_unless_installed()
    if task.plain_json:
        args, kwargs = normalize_json(args), normalize_json(kwargs)
    check_call(task, args, kwargs)
    key = None if task.unique is False else provided("unique_keys").key_of_call(task, args, kwargs)
    lane = lane_of_call(task, args, kwargs) if _may_have_lane(task) else ""
    return PackedCall(body_of(task, args, kwargs), key, lane)


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
    expires = 0 if task.expires is None else expires_ms(task.expires)
    trace = headers = None
    if conf.section(KitSettings).TRACING:
        trace = spans.tracer().sent(task.module_path, task.queue_name)
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


def raise_first(added: Iterable[PutResult | Exception]) -> None:
    """Raise the first error among these."""
    for answer in added:
        if isinstance(answer, Exception):
            raise answer


def _put_many(calls: Sequence[tuple[str, PackedCall]], turn: Turn, *, own: bool) -> Flow[list[Any]]:
    """Add jobs in one round trip: those without a unique key and a lane by one call for each queue or shard."""
    plain = dict[str, list[int]]()
    steps, places = list[Flow[Any]](), list[list[int]]()
    for place, (id, call) in enumerate(calls):
        name = ids.queue_of(id)
        if call.key or call.lane:
            key, in_lane = call.key or key_of_call(id), turn._replace(lane=call.lane)
            steps.append(flows.put_one(_queue(name), (id, call.body), key, in_lane, own=own, again=not call.key))
            places.append([place])
        else:
            plain.setdefault(name, []).append(place)
    for name, chosen in plain.items():
        jobs = [(calls[place][0], calls[place][1].body) for place in chosen]
        steps.append(flows.put_batch(_queue(name), jobs, turn))
        places.append(chosen)
    added: list[Any] = [None] * len(calls)
    for chosen, put in zip(places, (yield from gather(steps, return_exceptions=True)), strict=True):
        for place, each in zip(chosen, put if isinstance(put, list) else [put] * len(chosen), strict=True):
            added[place] = each
    return added
