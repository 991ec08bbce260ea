"""Calls whose results are stored: how a backend of ``django.tasks`` enqueues them, and reads and awaits their ends."""

from collections.abc import Iterator, Sequence
from typing import Any

from django.utils import timezone

from redis_kit.core.errors import RedisFailure
from redis_kit.core.flow import Flow
from redis_kit.core.gather import gather
from redis_kit.queues.engine import history
from redis_kit.queues.features.results import codec, store
from redis_kit.queues.framework import TaskResultDoesNotExist
from redis_kit.queues.queue import Queue
from redis_kit.queues.tasks.enqueue import Enqueuer, NewCall, PackedCall
from redis_kit.queues.tasks.result import RedisTaskResult, renew


class ResultEnqueuer(Enqueuer):
    """Enqueues calls whose results are stored, with the history of their jobs."""

    has_results = True

    def result(self, id: str, args: Any, kwargs: Any) -> RedisTaskResult:
        """See Enqueuer."""
        return codec.new(self.original, id, args, kwargs)

    def results(self, ids: Sequence[str], every_args: Sequence[Any], every_kwargs: Sequence[Any]) -> list[Any]:
        """See Enqueuer."""
        return codec.new_of_many(self.original, ids, every_args, every_kwargs)

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


def get(queue: Queue, id: str) -> Flow[RedisTaskResult]:
    """Read the result of a call of a queue. One round trip."""
    return _read(queue, id, (yield store.get_result(queue.key(""), id)))


def wait(queue: Queue, id: str, timeout: float) -> Flow[RedisTaskResult]:
    """Read the result of a call when it has ended, or after ``timeout`` seconds."""
    return _read(queue, id, (yield from store.wait(queue, id, timeout)))


def _read(queue: Queue, id: str, reply: list[Any]) -> RedisTaskResult:
    result = codec.read_reply(queue.name, id, reply)
    if result is None:
        why = "its transaction is not committed yet, it has expired, or a sink handed the job over to another system"
        raise TaskResultDoesNotExist(f"There is no result {id}: {why}.")
    return result
