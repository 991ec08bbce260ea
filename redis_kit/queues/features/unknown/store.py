"""Jobs whose calls not every worker can run, as flows: they are returned, and recalled."""

from redis_kit.core import conf
from redis_kit.core.flow import Flow
from redis_kit.core.primitive import Primitive
from redis_kit.core.scripts import ScriptCall
from redis_kit.queues.engine.calls import End, QueueScript
from redis_kit.queues.engine.claim import settle_one
from redis_kit.queues.engine.job import Job, member
from redis_kit.queues.reports import unknown_calls
from redis_kit.queues.settings import QueueSettings

RECALL = QueueScript("recall", __package__)
RETURNED, EXHAUSTED, CANCELLED = 2, 5, 6
SHAPES = 100  # of calls, remembered for a queue
RECALLED = 500  # jobs made ready in a second


def defer(queue: Primitive, job: Job, shape: str, expires: int) -> Flow[int]:
    """Return a job, for workers that can run it. Raises LeaseLost."""
    longest = int(conf.section(QueueSettings).UNKNOWN_TASK_TTL * 1000)
    digest = unknown_calls.digest(shape)
    end = End(member(job), "unfit", longest, SHAPES, expires, shape, digest)
    return (yield from settle_one(queue, job, end, part="unfit", name=digest))


def recall_step(queue: Primitive, shape: str, *, can_run: bool) -> ScriptCall:
    """Return the step that makes jobs of a shape ready if this process can run them, else counts them again.

    Its reply begins with how many are ready now; what follows is for calls_of().
    """
    digest = unknown_calls.digest(shape)
    return RECALL(queue.key(""), digest, int(can_run), RECALLED, job=digest)
