"""Changes of many jobs of a queue by their ids, as flows. Each shard of a queue is asked for all of them."""

from collections.abc import Callable, Sequence
from functools import partial

from redis_kit.core import conf
from redis_kit.core.flow import Flow
from redis_kit.core.primitive import Primitive
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.steps import CombinedBatch
from redis_kit.queues.engine import calls, manage, payload, shards
from redis_kit.queues.errors import Cancelled
from redis_kit.queues.settings import QueueSettings

Step = Callable[[str, str], ScriptCall]  # of the beginning of a queue's keys, and an id


def delete(queue: Primitive, ids: Sequence[str]) -> Flow[int]:
    """Delete jobs that no worker has; return how many there were. One round trip for each 500."""
    return sum((yield from _each(queue, ids, calls.DELETE)))


def run_now(queue: Primitive, ids: Sequence[str]) -> Flow[int]:
    """Make scheduled jobs ready; return how many were scheduled. One round trip for each 500."""
    return sum((yield from _each(queue, ids, calls.RUN_NOW)))


def cancel(queue: Primitive, ids: Sequence[str]) -> Flow[tuple[int, int]]:
    """Cancel jobs; return how many waited, and how many are to be stopped by their workers.

    One round trip for each 500.
    """
    ttl_ms = int(conf.section(QueueSettings).FAILED_RESULT_TTL * 1000)
    error = payload.encoded_error(Cancelled("The job was cancelled while it waited."))
    answers = yield from _each(queue, ids, partial(_cancel, error=error, ttl_ms=ttl_ms))
    return answers.count(1), answers.count(manage.STOPPING)


def _cancel(base: str, id: str, *, error: bytes, ttl_ms: int) -> ScriptCall:
    return calls.cancel(base, id, error=error, ttl_ms=ttl_ms)


def _each(queue: Primitive, ids: Sequence[str], step: Step) -> Flow[list[int]]:
    by_shard = yield from shards.each(queue, partial(_of_one, ids=ids, step=step))
    return [answer for answers in by_shard for answer in answers]


def _of_one(queue: Primitive, *, ids: Sequence[str], step: Step) -> Flow[list[int]]:
    answers: list[int] = []
    for at in range(0, len(ids), manage.CHUNK):
        steps = [step(queue.key(""), id) for id in ids[at : at + manage.CHUNK]]
        answers += yield CombinedBatch(steps)
    return answers
