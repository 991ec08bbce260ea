"""How far the loops of resumable tasks are, as flows. A worker that lost its claim can't change that."""

from redis_kit.core.flow import Flow
from redis_kit.core.primitive import Primitive
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.steps import Call
from redis_kit.queues.engine.calls import QueueScript, claim_of
from redis_kit.queues.engine.job import Job
from redis_kit.queues.keys import of_one

STORE_CURSOR = QueueScript("store_cursor", __package__)


def store_cursor(
    base: str, job: Job, number: int, position: tuple[bytes, int], progress: tuple[bytes, int], *, crashed: bool
) -> ScriptCall:
    """Return the step that stores how far a loop of a running job is, and its progress, each for a number of ms.

    If workers died with the job before (``crashed``), these crashes no longer count.
    """
    return STORE_CURSOR(base, *claim_of(job), number, *position, *progress, int(crashed), job=job.id)


def read(queue: Primitive, job: Job, number: int) -> Flow[bytes | None]:
    """Read the position of a loop; None if it has not been stored."""
    position: bytes | None = yield Call("HGET", of_one(queue.key(""), "cursor", job.id), number)
    return position


def store(
    queue: Primitive, job: Job, number: int, position: tuple[bytes, int], progress: tuple[bytes, int], *, crashed: bool
) -> Flow[bool]:
    """Store position and progress, each for a number of ms; False if the claim on the job was lost."""
    return bool((yield store_cursor(queue.key(""), job, number, position, progress, crashed=crashed)))


def forget(queue: Primitive, job: Job) -> Flow[None]:
    """Delete the positions of the loops of a job that is done."""
    yield Call("DEL", of_one(queue.key(""), "cursor", job.id))
