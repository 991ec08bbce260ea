"""Calls whose results are stored: how a backend of ``django.tasks`` enqueues them, and reads and awaits their ends."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from django.utils import timezone

from redis_kit.core.errors import RedisFailure
from redis_kit.core.flow import Flow, single
from redis_kit.core.gather import gather
from redis_kit.queues.engine import history
from redis_kit.queues.engine.unique import PutResult
from redis_kit.queues.features.results import codec, store
from redis_kit.queues.framework import TaskResultDoesNotExist, heard, task_enqueued
from redis_kit.queues.queue import Queue
from redis_kit.queues.tasks import enqueue
from redis_kit.queues.tasks.enqueue import NewCall, PackedCall, Stages
from redis_kit.queues.tasks.result import RedisTaskResult, renew
from redis_kit.queues.tasks.task import Task


class StoredResults:
    """The results of the calls of one backend. See RedisTaskBackend for the methods of the same names."""

    new_of_many = staticmethod(codec.new_of_many)

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self.stages = Stages(type(backend), self._stored, self._sent_many)

    def enqueue(self, task: Any, call: Task[..., Any], args: Any, kwargs: Any) -> RedisTaskResult:
        """Add a job and return the result of the call."""
        result, packed = self._packed(task, call, args, kwargs)
        stored, waits = partial(self._with_history, result, packed), self._backend.chosen.ENQUEUE_ON_COMMIT
        enqueue.send(call, result.id, stored, partial(self._sent, result), waits=waits)
        return result

    async def aenqueue(self, task: Any, call: Task[..., Any], args: Any, kwargs: Any) -> RedisTaskResult:
        """See enqueue()."""
        result, packed = self._packed(task, call, args, kwargs)
        added: list[PutResult] = []
        await enqueue.asend(call, result.id, self._with_history(result, packed), added.append)
        for put in added:
            enqueue.note(result, put)
            if put.created:
                if heard(task_enqueued, logging.DEBUG):
                    await task_enqueued.asend_robust(type(self._backend), task_result=result)
            elif not put.replaced:
                with suppress(RedisFailure, TaskResultDoesNotExist):
                    await result.arefresh()
        return result

    def get(self, queue: Queue, id: str) -> Flow[RedisTaskResult]:
        """Read the result of a call of a queue. One round trip."""
        return _read(queue, id, (yield store.get_result(queue.key(""), id)))

    def wait(self, queue: Queue, id: str, timeout: float) -> Flow[RedisTaskResult]:
        """Read the result of a call when it has ended, or after ``timeout`` seconds."""
        return _read(queue, id, (yield from store.wait(queue, id, timeout)))

    def _stored(self, new: Sequence[NewCall]) -> Iterator[PackedCall]:
        """Yield calls as they are stored, with the history of their jobs."""
        moment = timezone.now()
        before = history.line(moment, new[0].result.task.run_after, self._backend.alias) if new else b""
        for _, (body, key, lane), result in new:
            object.__setattr__(result, "enqueued_at", moment)
            yield PackedCall(before + body, key, lane)

    def _sent_many(self, pairs: Sequence[tuple[NewCall, PutResult]]) -> Flow[None]:
        """Note in results which jobs were there before, and read the results of these. One round trip, or none."""
        for (_, _, result), put in pairs:
            enqueue.note(result, put)
        before = [each.result for each, put in pairs if not put.replaced]
        queues = [self._backend.queue_of(result.id) for result in before]
        finds = [
            single(store.get_result(queue.key(""), result.id)) for queue, result in zip(queues, before, strict=True)
        ]
        replies = (yield from gather(finds, return_exceptions=True)) if finds else []
        for queue, result, reply in zip(queues, before, replies, strict=True):
            if not isinstance(reply, Exception):
                with suppress(TaskResultDoesNotExist):
                    renew(result, _read(queue, result.id, reply))

    def _packed(self, task: Any, call: Task[..., Any], args: Any, kwargs: Any) -> tuple[RedisTaskResult, PackedCall]:
        """Return the result of a new call, and the call as it is stored. Its id depends on its arguments."""
        result = codec.new(task, "", args, kwargs)
        packed = enqueue.packed(call, result.args, result.kwargs)
        object.__setattr__(result, "id", enqueue.new_id(call, packed))
        return result, packed

    def _sent(self, result: RedisTaskResult, added: PutResult) -> None:
        enqueue.note(result, added)
        if added.created:
            if heard(task_enqueued, logging.DEBUG):
                task_enqueued.send_robust(type(self._backend), task_result=result)
        elif not added.replaced:
            with suppress(RedisFailure, TaskResultDoesNotExist):
                result.refresh()

    def _with_history(self, result: RedisTaskResult, packed: PackedCall) -> PackedCall:
        """Return a call with the history of its job before it."""
        object.__setattr__(result, "enqueued_at", now := timezone.now())
        return packed._replace(body=history.line(now, result.task.run_after, self._backend.alias) + packed.body)


def _read(queue: Queue, id: str, reply: list[Any]) -> RedisTaskResult:
    result = codec.read_reply(queue.name, id, reply)
    if result is None:
        why = "its transaction is not committed yet, it has expired, or a sink handed the job over to another system"
        raise TaskResultDoesNotExist(f"There is no result {id}: {why}.")
    return result
