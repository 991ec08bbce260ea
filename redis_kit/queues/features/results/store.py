"""Results of calls, as flows: they are read and waited for, and stored for jobs that ended without their worker."""

from time import monotonic
from typing import Any

from redis_kit.core import conf
from redis_kit.core.flow import Flow
from redis_kit.core.logs.error_text import path_of
from redis_kit.core.primitive import Primitive
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.steps import Batch, Pop
from redis_kit.core.values.numbers import seconds
from redis_kit.core.values.sequences import batched
from redis_kit.queues import validation
from redis_kit.queues.engine import payload
from redis_kit.queues.engine.calls import QueueScript, claim_of
from redis_kit.queues.engine.job import Job
from redis_kit.queues.errors import CANCELLED_WHILE_RUNNING, Cancelled, WorkerLost
from redis_kit.queues.keys import of_one
from redis_kit.queues.settings import QueueSettings

AGAIN = 5.0  # seconds until a lost wake-up is noticed
WAITING = (b"READY", b"RUNNING")
GET_RESULT, STORE_PROGRESS = QueueScript("get_result", __package__), QueueScript("store_progress", __package__)
LIST_ENDINGS, STORE_ENDING = QueueScript("list_endings", __package__), QueueScript("store_ending", __package__)


def get_result(base: str, id: str, *, waits: bool = False) -> ScriptCall:
    """Return the step that reads the result of a call. Its reply begins with the status."""
    return GET_RESULT(base, id, int(waits), job=id)


def store_progress(base: str, job: Job, *, progress: bytes, ttl_ms: int) -> ScriptCall:
    """Return the step that stores the progress of a running job for ``ttl_ms``."""
    return STORE_PROGRESS(base, *claim_of(job), progress, ttl_ms, job=job.id)


def wait(queue: Primitive, id: str, timeout: float) -> Flow[list[Any]]:
    """Read what is stored about a call when it has ended, or when the time is up."""
    deadline = monotonic() + seconds("timeout", timeout, validation.WAIT)
    while True:
        reply: list[Any] = yield get_result(queue.key(""), id, waits=True)
        left = deadline - monotonic()
        if reply[0] not in WAITING or left <= 0:
            return reply
        yield Pop(of_one(queue.key(""), "finished", id), timeout=min(left, AGAIN))


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
