"""What a queue does, as flows: arguments checked, one script called, its answer in words."""

from collections.abc import Iterable, Iterator
from typing import Any

from redis_kit.core import conf
from redis_kit.core.errors import InvalidValue, RedisFailure, RedisUnavailable
from redis_kit.core.flow import Flow
from redis_kit.core.primitive import Primitive
from redis_kit.queues import validation
from redis_kit.queues.errors import LeaseLost
from redis_kit.queues.jobs import ids as identity
from redis_kit.queues.jobs import payload as serializers
from redis_kit.queues.jobs.ack import Ack, ack_of
from redis_kit.queues.jobs.job import Job, QueueCounts, State
from redis_kit.queues.jobs.unique import PutResult, UniqueKey
from redis_kit.queues.settings import QueueSettings
from redis_kit.queues.store import calls, names
from redis_kit.queues.store import claim as claiming
from redis_kit.queues.validation import Delay

CHUNK = 500  # jobs in one call
CHUNK_BYTES = 1024 * 1024
GIVE_BACK = 100  # jobs in one call
MOST_ENDED = 250  # jobs in one call, of which the server remembers that it ended them
ADDED, REPLACED = 1, 2
MAY_BE_THERE = (
    "The answer was lost, so the jobs may have been added. A repeat with the same id adds none while the job is in the "
    "queue, but one more if it is done by then. With unique_until=seconds, or @task(unique=seconds), a repeat within "
    "that time adds none, whatever became of the job."
)
_STATES: dict[int, State] = {1: "ready", 2: "scheduled", 3: "dead"}


def job(payload: Any, id: str | None = None) -> tuple[str, bytes]:
    """Return the id and body of a new job."""
    return identity.new_job() if id is None else validation.identifier("id", id), serializers.dumps(payload)


def chunks(payloads: Iterable[Any]) -> Iterator[list[tuple[str, bytes]]]:
    """Yield new jobs in groups that a server takes in quickly."""
    chunk: list[tuple[str, bytes]] = []
    size = 0
    for place, payload in enumerate(payloads):
        chunk.append((identity.new_job(), serializers.dumps(payload, f"payloads[{place}]")))
        size += len(chunk[-1][1])
        if len(chunk) == CHUNK or size >= CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def put(
    queue: Primitive,
    jobs: list[tuple[str, bytes]],
    *,
    delay: Delay = 0,
    due: int = 0,
    priority: int = 0,
    own: bool = False,
) -> Flow[list[str]]:
    """Add jobs, due after a delay or at a time in ms; return their ids, or none where an ``own`` id was in use."""
    validation.whole("priority", priority, validation.PRIORITY)
    wait = validation.milliseconds(delay)
    try:
        added = yield calls.put(queue.key(""), jobs, delay=wait, due=due, priority=priority, own=own)
    except RedisUnavailable as error:
        _explain(error)
        raise
    yield from _noted(queue)
    return [id for id, _ in jobs] if added else []


def put_one(
    queue: Primitive,
    job: tuple[str, bytes],
    key: UniqueKey | None = None,
    *,
    delay: Delay = 0,
    due: int = 0,
    priority: int = 0,
    own: bool = False,
) -> Flow[PutResult]:
    """Add a job, unless there is one of the same unique key; return which job there is now."""
    if key is None:
        added = yield from put(queue, [job], delay=delay, due=due, priority=priority, own=own)
        return PutResult(job[0], bool(added))
    validation.whole("priority", priority, validation.PRIORITY)
    wait = validation.milliseconds(delay)
    try:
        answer, id = yield calls.put_unique(queue.key(""), job, key, delay=wait, due=due, priority=priority)
    except RedisUnavailable as error:
        _explain(error)
        raise
    yield from _noted(queue)
    return PutResult(id.decode("utf-8", "surrogateescape"), answer == ADDED, answer == REPLACED)


def _explain(error: RedisUnavailable) -> None:
    if error.indeterminate:
        error.add_note(MAY_BE_THERE)


def _noted(queue: Primitive) -> Flow[None]:
    if (queue.using, queue.key("")) not in names.noted and len(names.noted) < names.MOST:
        yield from note(queue)


def note(queue: Primitive) -> Flow[None]:
    """Note that the queue exists; the next one does so where this failed."""
    try:
        yield names.note(queue.name)
    except RedisFailure:
        return
    names.noted.add((queue.using, queue.key("")))


def claim(
    queue: Primitive, limit: int, worker: str | None, about: str = "", done: Iterable[Job] = ()
) -> Flow[claiming.Claimed]:
    """End jobs and take others."""
    validation.whole("limit", limit, validation.LIMIT)
    over = _batch(done)
    return (yield from claiming.claim(queue, _worker(worker), limit, about, over))


def ack(queue: Primitive, jobs: Iterable[Job]) -> Flow[list[Job]]:
    """End jobs that are done; return those whose claim had been lost."""
    by_worker: dict[str, list[Job]] = {}
    for job in jobs:
        by_worker.setdefault(job.token.partition("/")[0], []).append(job)
    lost = []
    for worker, held in by_worker.items():
        for at in range(0, len(held), MOST_ENDED):
            batch = held[at : at + MOST_ENDED]
            numbers = yield calls.ack(queue.key(""), worker, _batch(batch))
            lost += [batch[number - 1] for number in numbers]
    return lost


def nack(
    queue: Primitive, job: Job, delay: Delay, error: str, max_attempts: int | None, kept: tuple[bytes, int] = (b"", 0)
) -> Flow[State]:
    """End a failed attempt; ``kept`` is what its result is to tell, and for how many ms."""
    most = conf.section(QueueSettings).MAX_ATTEMPTS if max_attempts is None else max_attempts
    validation.whole("max_attempts", most, validation.LIMIT)
    wait = validation.milliseconds(delay)
    answer = yield calls.nack(queue.key(""), job, delay=wait, attempts=most, reason=error, error=kept[0], keep=kept[1])
    if not answer:
        raise lost(queue, [job])
    return _STATES[answer]


def heartbeat(queue: Primitive, worker: str | None, about: str = "") -> Flow[claiming.HeartbeatReply]:
    """Keep a worker alive, and give back what dead ones held."""
    return claiming.heartbeat_reply((yield calls.heartbeat(queue.key(""), _worker(worker), about)))


def sign_off(queue: Primitive, worker: str | None) -> Flow[int]:
    """Give back all that a worker holds."""
    total = 0
    while True:
        count: int = yield calls.SIGN_OFF(queue.key(""), _worker(worker), GIVE_BACK)
        total += count
        if count < GIVE_BACK:
            return total


def counts(queue: Primitive) -> Flow[QueueCounts]:
    """Count jobs by state."""
    return QueueCounts(*(yield calls.COUNT(queue.key(""))))


def _worker(worker: str | None) -> str:
    return identity.this_process() if worker is None else validation.identifier("worker", worker)


def _batch(jobs: Iterable[Job]) -> list[Ack]:
    batch = [ack_of(job) for job in jobs]
    if len(batch) > MOST_ENDED:
        raise InvalidValue(f"{len(batch)} jobs can't be ended in one call; at most {MOST_ENDED} are allowed.")
    return batch


def lost(queue: Primitive, jobs: list[Job]) -> LeaseLost:
    """Return the error that tells of lost claims."""
    ids = ", ".join(ascii(job.id) for job in jobs[:3]) + (f" and {len(jobs) - 3} more" if len(jobs) > 3 else "")
    what = f"The claim on job {ids} of queue {queue.name!a} is over; another worker has the job or did it."
    if len(jobs) > 1:
        what = f"The claims on jobs {ids} of queue {queue.name!a} are over; other workers have the jobs or did them."
    return LeaseLost(what)
