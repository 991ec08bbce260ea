"""Jobs whose calls not every worker can run, as in a rolling deploy. They are returned until one can."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from redis_kit.core import conf
from redis_kit.core.flow import Flow
from redis_kit.core.primitive import Primitive
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.values.sequences import batched
from redis_kit.queues.engine import call_shape
from redis_kit.queues.engine import calls as moves
from redis_kit.queues.engine.claim import lost, settle
from redis_kit.queues.engine.job import Job, member
from redis_kit.queues.settings import QueueSettings

RETURNED, EXHAUSTED, CANCELLED = 2, 5, 6
SHAPES = 100  # of calls, remembered for a queue
RECALLED = 500  # jobs made ready in a second


class UnknownCalls(NamedTuple):
    """Calls of one shape that workers returned: the task, the shape as a call, and how many jobs wait.

    ``age`` is how many seconds ago the first of them was returned; ``known`` is True if a living worker can run them.
    ``version`` is that of messages of a newer release, which name no task.
    """

    task: str
    call: str
    jobs: int
    age: float
    known: bool
    version: int | None = None


def defer(queue: Primitive, job: Job, shape: str, expires: int) -> Flow[int]:
    """Return a job, for workers that can run it. Raises LeaseLost."""
    longest = int(conf.section(QueueSettings).UNKNOWN_TASK_TTL * 1000)
    digest = call_shape.digest(shape)
    end = moves.End(member(job), "unfit", longest, SHAPES, expires, shape, digest)
    (answer,) = yield from settle(queue, [end], digest=digest)
    if not answer:
        raise lost(queue, [job])
    return answer


class Recalled(NamedTuple):
    """How many jobs of a shape are ready now, and the jobs that wait."""

    moved: int
    waiting: UnknownCalls


def recall_step(queue: Primitive, shape: str, *, can_run: bool) -> ScriptCall:
    """Return the step that makes jobs of a shape ready if this process can run them, else counts them again."""
    digest = call_shape.digest(shape)
    return moves.RECALL(queue.key(""), digest, int(can_run), RECALLED, job=digest)


def recalled(shape: str, reply: Sequence[int]) -> Recalled | None:
    """Return the reply to recall_step() by names; None if no job of the shape was returned."""
    return Recalled(reply[0], _calls(shape.encode(), *reply[1:])) if reply else None


def read(reply: Sequence[Any]) -> tuple[UnknownCalls, ...]:
    """Return the calls in a reply: shape, jobs, and how many ms ago the first job came and a worker could run it."""
    return _sorted(_calls(*parts) for parts in batched(reply, 4))


def merged(calls: Iterable[UnknownCalls]) -> tuple[UnknownCalls, ...]:
    """Return the calls of several shards: those of one shape become one."""
    by_call: dict[str, UnknownCalls] = {}
    for call in calls:
        other = by_call.get(call.call, call._replace(jobs=0))
        jobs, age = call.jobs + other.jobs, max(call.age, other.age)
        by_call[call.call] = call._replace(jobs=jobs, age=age, known=call.known and other.known)
    return _sorted(by_call.values())


def _sorted(calls: Iterable[UnknownCalls]) -> tuple[UnknownCalls, ...]:
    return tuple(sorted((call for call in calls if call.jobs), key=lambda call: (call.known, -call.jobs, call.call)))


def _calls(shape: bytes, jobs: int, age: int, could_run: int) -> UnknownCalls:
    text = shape.decode("utf-8", "replace")
    is_known = 0 <= could_run <= moves.lease()
    task, call, version = call_shape.task_of(text), call_shape.described(text), call_shape.version_of(text)
    return UnknownCalls(task, call, jobs, max(0, age) / 1000, is_known, version)
