"""Which jobs have begun, as a flow."""

from redis_kit.core.flow import Flow
from redis_kit.core.primitive import Primitive
from redis_kit.queues.engine.calls import QueueScript, claim_of
from redis_kit.queues.engine.job import Job

BEGIN = QueueScript("begin", __package__)
LOST, BEGINS, HAS_BEGUN = 0, 1, 2


def begin(queue: Primitive, job: Job) -> Flow[int]:
    """Note that a claimed job begins, if its claim holds and it has not begun by an earlier one."""
    answer: int = yield BEGIN(queue.key(""), *claim_of(job))
    return answer
