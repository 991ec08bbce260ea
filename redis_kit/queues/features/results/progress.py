"""Progress that a running task reports. Imports no Redis client: modules of tasks import it."""

import contextlib
from typing import Any

from redis_kit.core.errors import InvalidValue, PoolExhausted, RedisUnavailable
from redis_kit.core.flow import Flow
from redis_kit.core.text import shortened
from redis_kit.queues.engine.calls import QueueScript, claim_of
from redis_kit.queues.errors import LeaseLost
from redis_kit.queues.tasks import current_job
from redis_kit.queues.tasks import progress as stored_progress
from redis_kit.queues.tasks.current_job import CurrentJob

STORE_PROGRESS = QueueScript("store_progress", __package__)


def progress(done: float, total: float | None = None, note: str = "") -> None:
    """Report how far the running task is; others read it as ``result.progress``. One round trip, or none.

    At most ten calls a second are sent, and the first one with ``done == total``. A note is cut to 500 characters.
    The call does nothing while Redis is unavailable, for a task that stores no result, and outside of a worker.
    Raises InvalidValue, and LeaseLost if another worker has the job by now: stop then.
    """
    if current := _reporting(done, total, note):
        with contextlib.suppress(RedisUnavailable, PoolExhausted):
            current.queue.run_flow(_report(current, done, total, note))


async def aprogress(done: float, total: float | None = None, note: str = "") -> None:
    """See progress()."""
    if current := _reporting(done, total, note):
        with contextlib.suppress(RedisUnavailable, PoolExhausted):
            await current.queue.arun_flow(_report(current, done, total, note))


def _reporting(done: Any, total: Any, note: Any) -> CurrentJob | None:
    """Return the job to report on; None if nobody could read it, or the last report is too recent."""
    stored_progress.check(done, total)
    if not isinstance(note, str):
        raise InvalidValue(f"note must be text, not {shortened(note)}.")
    current = current_job.get()
    return current if current and current.result_ttl and current.may_report(done, total) else None


def _report(current: CurrentJob, done: float, total: float | None, note: str) -> Flow[None]:
    job, queue = current.job, current.queue
    keep = current.result_ttl(failed=True) if current.result_ttl else 0
    text = stored_progress.dumps(done, total, note)
    if not (yield STORE_PROGRESS(queue.key(""), *claim_of(job), text, keep, job=job.id)):
        raise LeaseLost(f"The claim on job {job.id!a} of queue {queue.name!a} is over.")
