"""How far the loops of resumable tasks are, as flows. A worker that lost its claim can't change that."""

from redis_kit.core.flow import Flow
from redis_kit.core.primitive import Primitive
from redis_kit.core.steps import repeated
from redis_kit.queues.engine.calls import QueueScript, claim_of
from redis_kit.queues.engine.job import Job

STORE_CURSOR = QueueScript("store_cursor", __package__)


def store(
    queue: Primitive, job: Job, number: int, position: tuple[bytes, int], progress: tuple[bytes, int], *, crashed: bool
) -> Flow[bool]:
    """Store position and progress, each for a number of ms; False if the claim on the job was lost.

    If workers died with the job before (``crashed``), these crashes no longer count. A call whose reply is lost is
    repeated, for it may be the last one before the worker stops.
    """
    parts = (*claim_of(job), number, *position, *progress, int(crashed))
    return bool((yield from repeated(STORE_CURSOR(queue.key(""), *parts, job=job.id))))
