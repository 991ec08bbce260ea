"""Jobs on their way into a queue, as flows. Each process registers a queue with the first job it puts there."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from time import monotonic
from typing import Any, TypeVar

from redis_kit.core import conf, scripts
from redis_kit.core.errors import RedisFailure, RedisUnavailable
from redis_kit.core.flow import Flow, single
from redis_kit.core.logs.rate_limit import PAUSE
from redis_kit.core.primitive import Primitive
from redis_kit.core.steps import Batch, Call, repeated
from redis_kit.core.values.numbers import whole_number
from redis_kit.core.values.sequences import several
from redis_kit.queues import validation
from redis_kit.queues.engine import calls
from redis_kit.queues.engine import ids as identity
from redis_kit.queues.engine import payload as serializers
from redis_kit.queues.engine.calls import AT_ONCE, NewJob, Turn
from redis_kit.queues.engine.feature import lane_of, provided
from redis_kit.queues.engine.spread import spread
from redis_kit.queues.engine.unique import PERIOD, PutResult, UniqueKey, key_of_call
from redis_kit.queues.keys import QueueKeys, names_key
from redis_kit.queues.settings import check_name
from redis_kit.queues.validation import Delay

logger = logging.getLogger("redis_kit")
Item = TypeVar("Item")
CHUNK = 500  # items in one call
CHUNK_BYTES = 1024 * 1024
NEW = 2  # the reply for a name that was missing
MOST_NAMES = 1000
REGISTER = scripts.load("redis_kit.queues.engine", "register_queue")
_registered_queues: set[tuple[str, str]] = set()  # connection, and the beginning of the queue's keys
_full_until: dict[str, float] = {}  # by connection: when to ask the server for room again
UNLISTED = (
    "Queue %a works, but the dashboard, rk_queues and the metrics do not show it: there are %s names of queues by now. "
    "Use fewer queues, such as one with a group for each customer, or add this one to REDIS_KIT['QUEUES']['NAMES']."
)
MAY_BE_THERE = (
    "The answer was lost, so the jobs may have been added. A repeat with the same id adds none while the job is in the "
    "queue, but one more if it is done by then. With unique_until=seconds, or @task(unique=seconds), a repeat within "
    "that time adds none, whatever became of the job."
)


def job(payload: Any, id: str | None = None, part: str = "") -> tuple[str, bytes]:
    """Return the id and body of a new job. A new id names the part of the queue, if it has several."""
    if id is not None:
        return validation.identifier("id", id), serializers.dumps(payload)
    return identity.new_call(part) if part else identity.new_job(), serializers.dumps(payload)


def new_jobs(payloads: Iterable[Any]) -> Iterator[list[NewJob]]:
    """Yield new jobs in groups that a server takes in quickly."""
    jobs = (
        (identity.new_job(), serializers.dumps(payload, f"payloads[{place}]"))
        for place, payload in enumerate(several(payloads, "payloads"))
    )
    return chunks(jobs, lambda job: len(job[1]))


def chunks(items: Iterable[Item], size: Callable[[Item], int]) -> Iterator[list[Item]]:
    """Yield items in groups that a server takes in quickly, at most CHUNK."""
    chunk: list[Item] = []
    total = 0
    for item in items:
        chunk.append(item)
        total += size(item)
        if len(chunk) == CHUNK or total >= CHUNK_BYTES:
            yield chunk
            chunk, total = [], 0
    if chunk:
        yield chunk


def turn_of(queue: Primitive, delay: Delay, priority: int, group: str | None) -> Turn:
    """Return when a job of a caller starts. Raises InvalidValue, and InvalidName for the name of the queue."""
    check_name(queue.name)
    whole_number("priority", priority, validation.PRIORITY)
    lane = lane_of(queue.name, group)
    return Turn(delay=validation.milliseconds(delay), priority=priority, lane=lane)


def put(queue: Primitive, jobs: list[tuple[str, bytes]], turn: Turn = AT_ONCE, *, own: bool = False) -> Flow[list[str]]:
    """Add jobs; return their ids, or none where an ``own`` id was in use.

    As with put_batch() and put_one(), numbers were checked by the caller: those of a task as it was defined.
    """
    base = queue.key("")
    try:
        added = yield calls.put(base, jobs, turn, own=own)
    except RedisUnavailable as error:
        _explain(error)
        raise
    if (queue.using, base) not in _registered_queues:
        yield from registered(queue)
    return [id for id, _ in jobs] if added else []


def put_batch(queue: Primitive, jobs: Sequence[tuple[str, bytes]], turn: Turn) -> Flow[list[PutResult]]:
    """Add new jobs without unique keys and lanes. One call, which is repeated if its reply is lost."""
    step = calls.put(queue.key(""), jobs, turn, once=identity.new_job(), ttl_ms=PERIOD)
    yield from _explained(repeated(step))
    yield from registered(queue)
    return [PutResult(id, True) for id, _ in jobs]


def put_payload(queue: Primitive, payload: Any, id: str | None, key: UniqueKey | None, turn: Turn) -> Flow[PutResult]:
    """Add a job to the part of the queue that it belongs to; see put_one(). Raises InvalidValue."""
    parts = spread()
    name = parts.place(queue.name, lane=turn.lane, key=key, id=id or "")
    return put_one(parts.part(queue, name), job(payload, id, name), key, turn, own=id is not None)


def put_many(queue: Primitive, jobs: list[tuple[str, bytes]], turn: Turn) -> Flow[list[str]]:
    """Add jobs to the parts of a queue; return their ids."""
    return spread().put_many(queue, jobs, turn.lane, partial(put, turn=turn))


def put_one(
    queue: Primitive,
    job: tuple[str, bytes],
    key: UniqueKey | None = None,
    turn: Turn = AT_ONCE,
    *,
    own: bool = False,
    again: bool = False,
) -> Flow[PutResult]:
    """Add a job, unless there is one of the same unique key; return which job there is now.

    With ``again`` the call is repeated if its reply is lost, as the key is of this job alone.
    """
    if key is None:
        added = yield from put(queue, [job], turn, own=own)
        return PutResult(job[0], bool(added))
    base = queue.key("")
    if is_of_call := key == key_of_call(job[0]):
        step = calls.put(base, [job], turn, own=own, once=key.key, ttl_ms=PERIOD)
    else:
        step = provided("unique_keys").put(base, job, key, turn, own=own)
    reply = yield from _explained(repeated(step) if again else single(step))
    yield from registered(queue)
    if is_of_call:
        return PutResult(job[0], again or reply == 1)
    placed: PutResult = provided("unique_keys").result(reply)
    return placed


def _explained(flow: Flow[Any]) -> Flow[Any]:
    try:
        return (yield from flow)
    except RedisUnavailable as error:
        _explain(error)
        raise


def _explain(error: RedisUnavailable) -> None:
    # Calls that are sent together share an error.
    if error.indeterminate and MAY_BE_THERE not in getattr(error, "__notes__", ()):
        error.add_note(MAY_BE_THERE)


def registered(queue: Primitive) -> Flow[None]:
    """Register a queue with the first job that this process puts there, or a minute after its server had no room."""
    if (queue.using, queue.key("")) not in _registered_queues and monotonic() >= _full_until.get(queue.using, 0):
        yield from register(queue)


def register(queue: Primitive) -> Flow[bool]:
    """Register a queue by its name, and return whether it was missing; if this fails, the next call does so."""
    try:
        reply = yield REGISTER([names_key()], [queue.name, MOST_NAMES])
    except RedisFailure:
        return False
    if reply:
        _registered_queues.add((queue.using, queue.key("")))
    else:
        if queue.using not in _full_until:
            logger.warning(UNLISTED, queue.name, f"{MOST_NAMES:,}")
        _full_until[queue.using] = monotonic() + PAUSE
    return bool(reply == NEW)


def never_used(queues: Sequence[Primitive]) -> Flow[list[Primitive]]:
    """Return the queues into which no job was ever put. One round trip."""
    unused = yield from _unused(queues)
    return [queue for queue, _ in unused]


def forget_unused(queues: Sequence[Primitive]) -> Flow[None]:
    """Take the queues off the list of names into which no job was ever put, and that no worker serves."""
    unserved = yield from _unserved(queues)
    if not unserved:
        return
    yield Call("SREM", names_key(), *(queue.name for queue in unserved))
    # A job or a worker may have come between the two. One that comes later registers the queue after this.
    still = yield from _unserved(unserved)
    for queue in unserved:
        if queue not in still:
            yield from register(queue)


def _unserved(queues: Sequence[Primitive]) -> Flow[list[Primitive]]:
    unused = yield from _unused(queues)
    return [queue for queue, workers in unused if not workers]


def _unused(queues: Sequence[Primitive]) -> Flow[list[tuple[Primitive, int]]]:
    """Return the queues into which no job was ever put, with their numbers of workers."""
    # A worker's sweep creates the counter with 0, and a job that was only ever scheduled has not counted yet.
    keys = [QueueKeys.of(queue.key("")) for queue in queues]
    steps = [(Call("GET", key.sequence), Call("EXISTS", key.jobs), Call("ZCARD", key.workers)) for key in keys]
    replies = iter((yield Batch(list(chain.from_iterable(steps)))))
    each = zip(queues, replies, replies, replies, strict=True)
    return [(queue, workers) for queue, sequence, jobs, workers in each if sequence in (None, b"0") and not jobs]


conf.on_change(_full_until.clear)
conf.on_change(_registered_queues.clear)  # an alias may lead to another server now
