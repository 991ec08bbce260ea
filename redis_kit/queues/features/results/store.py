"""Results in Redis. Nothing here needs a framework of tasks, as a process without one may end the jobs of others."""

from redis_kit.core import conf
from redis_kit.core.flow import Flow
from redis_kit.core.logs.error_text import path_of
from redis_kit.core.primitive import Primitive
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.steps import Batch
from redis_kit.core.values.sequences import batched
from redis_kit.queues.engine import payload
from redis_kit.queues.engine.calls import QueueScript
from redis_kit.queues.errors import CANCELLED_WHILE_RUNNING, Cancelled, WorkerLost
from redis_kit.queues.settings import QueueSettings

GET_RESULT = QueueScript("get_result", __package__)
LIST_ENDINGS, STORE_ENDING = QueueScript("list_endings", __package__), QueueScript("store_ending", __package__)


def get_result(base: str, id: str, *, waits: bool = False) -> ScriptCall:
    """Return the step that reads the result of a call. Its reply begins with the status."""
    return GET_RESULT(base, id, int(waits), job=id)


def store_endings(queue: Primitive) -> Flow[None]:
    """Store the results of jobs that ended without their worker: as poison, or cancelled. Two round trips, or one."""
    base, ttl_ms = queue.key(""), int(conf.section(QueueSettings).FAILED_RESULT_TTL * 1000)
    listed = yield LIST_ENDINGS(base)
    steps = []
    for id, ending in batched(listed, 2):
        kind, _, reason = ending.decode("utf-8", "replace").split(" ", 2)
        error = payload.encoded_traceback(path_of(WorkerLost), reason)
        if kind == "cancelled":
            error = payload.encoded_error(Cancelled(CANCELLED_WHILE_RUNNING))
        name = id.decode("utf-8", "surrogateescape")
        steps.append(STORE_ENDING(base, id, error, ttl_ms, job=name))
    if steps:
        yield Batch(steps, lenient=True)
