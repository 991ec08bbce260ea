"""Looking into a queue and changing what is in it, as flows."""

from collections.abc import Iterable

from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow
from redis_kit.core.primitive import Primitive
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.text import shortened
from redis_kit.queues import validation
from redis_kit.queues.jobs import job
from redis_kit.queues.jobs.job import Pause, State, StoredJob
from redis_kit.queues.store import calls
from redis_kit.queues.validation import Delay

CHUNK = 500  # jobs in one call
LOOKED_THROUGH = 10_000  # running jobs in a search for who has one
MOST_BYTES = 16 * 1024 * 1024  # read by one call
UNCUT = 2**31
STATES = ("ready", "scheduled", "running", "dead")
PURGED = ("ready", "scheduled", "dead")


def peek(queue: Primitive, limit: int, state: State) -> Flow[list[StoredJob]]:
    """Look at jobs of one state."""
    validation.whole("limit", limit, validation.LIMIT)
    validation.one_of("state", state, STATES)
    return job.stored(state, (yield peek_step(queue, limit, state)))


def peek_step(
    queue: Primitive, limit: int, state: State, *, offset: int = 0, cut: int = UNCUT, share: int = 1
) -> ScriptCall:
    """Return the step that looks at jobs, cut to their first bytes; ``share`` is how many such steps go together."""
    return calls.PEEK(queue.key(""), state, offset, limit, cut, MOST_BYTES // share)


def find(queue: Primitive, id: str) -> Flow[StoredJob | None]:
    """Look at one job."""
    return found((yield find_step(queue, id)))


def find_step(queue: Primitive, id: str) -> ScriptCall:
    """Return the step that looks at one job. Raises InvalidValue."""
    return calls.GET_JOB(queue.key(""), validation.identifier("id", id), LOOKED_THROUGH)


def found(reply: list[bytes]) -> StoredJob | None:
    """Return the job of the reply to find_step(), if there is one."""
    if not reply:
        return None
    state: State = reply[0].decode()  # type: ignore[assignment]
    return job.stored(state, reply[1:])[0]


def remove(queue: Primitive, id: str) -> Flow[bool]:
    """Remove a job that no worker has."""
    return bool((yield calls.DELETE(queue.key(""), validation.identifier("id", id))))


def run_now(queue: Primitive, id: str) -> Flow[bool]:
    """Make a scheduled job ready."""
    return bool((yield calls.RUN_NOW(queue.key(""), validation.identifier("id", id))))


def requeue(queue: Primitive, ids: Iterable[str]) -> Flow[int]:
    """Make some dead jobs ready."""
    if isinstance(ids, str):
        raise InvalidValue(f"ids must be several, such as [{shortened(ids)}].")
    chosen = [validation.identifier("id", id) for id in ids]
    moved = 0
    for at in range(0, len(chosen), CHUNK):
        moved += yield calls.REQUEUE(queue.key(""), 0, *chosen[at : at + CHUNK])
    return moved


def requeue_dead(queue: Primitive, limit: int) -> Flow[int]:
    """Make dead jobs ready, the oldest first."""
    validation.whole("limit", limit, validation.LIMIT)
    moved: int = yield calls.REQUEUE(queue.key(""), limit)
    return moved


def purge(queue: Primitive, state: State) -> Flow[int]:
    """Remove as many jobs of a state as there are at the start, so that it comes to an end."""
    validation.one_of("state", state, PURGED)
    counts = job.Counts(*(yield calls.COUNT(queue.key(""))))
    most: int = getattr(counts, state)
    removed = 0
    while removed < most:
        count: int = yield calls.PURGE(queue.key(""), state, min(CHUNK, most - removed))
        removed += count
        if not count:
            break
    return removed


def pause(queue: Primitive, seconds: Delay | None) -> Flow[None]:
    """Let the queue give out no jobs."""
    time = 0
    if seconds is not None:
        time = validation.milliseconds(seconds, "seconds")
        if not time:
            raise InvalidValue("seconds must be more than 0; None is a pause without an end.")
    yield calls.PAUSE(queue.key(""), time)


def resume(queue: Primitive) -> Flow[bool]:
    """Let it give out jobs again."""
    return bool((yield calls.RESUME(queue.key(""))))


def paused(queue: Primitive) -> Flow[Pause | None]:
    """Tell whether it is paused."""
    reply = yield calls.GET_PAUSE(queue.key(""))
    return job.pause(*reply) if reply else None
