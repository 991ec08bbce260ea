"""The duty of workflows: it repairs those whose jobs are gone or were never added, and forgets expired ones.

Each end of a step is reported by the process that recorded it. This finds what was not reported: jobs that were deleted
or cancelled, or whose last worker died before it could report, and steps whose jobs were never added.
"""

import logging
from collections.abc import Callable
from time import monotonic
from typing import Any

from redis_kit.core.errors import RedisFailure
from redis_kit.core.flow import Flow
from redis_kit.core.logs.rate_limit import LogRateLimit
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.steps import Batch, Call
from redis_kit.core.values.sequences import batched
from redis_kit.queues.features.workflows import store
from redis_kit.queues.features.workflows.step import StepCall
from redis_kit.queues.features.workflows.store import StepJob, list_key, read_node, workflow_key
from redis_kit.queues.keys import QueueKeys
from redis_kit.queues.queue import Queue
from redis_kit.queues.worker.shared.failures import UNAVAILABLE

logger = logging.getLogger("redis_kit.worker")
INTERVAL = 15.0  # seconds between two runs
SOON = 1.0  # seconds to the next run if there was more than one run can do
NOBODY = -1  # made no step due
SAMPLE = 10  # workflows of the list that are looked at, whether they have expired
MISSING = "its job is gone: it was cancelled or deleted, or the server lost it with its data"


class Caretaker:
    """Looks after the workflows that are due for it, 20 in a run. ``run_flow`` makes its calls to the server.

    Three round trips every 15 s, and two or more for each workflow.
    """

    def __init__(self, run_flow: Callable[..., Any]) -> None:
        self.due = 0.0
        self._run_flow = run_flow
        self._log_limit = LogRateLimit()

    def run(self) -> None:
        """Look after some workflows, and forget some that have expired."""
        self.due = monotonic() + INTERVAL
        try:
            many_expired = self._run_flow(forget_expired())
            ids = self._run_flow(taken())
        except UNAVAILABLE:
            self.due = 0.0
            raise
        except RedisFailure as error:
            self._log_limit.log(logger.error, "", "Workflows can't be read: %s", error)
            return
        if many_expired or len(ids) == store.CHECKED_WORKFLOWS:
            self.due = monotonic() + SOON
        for id in ids:
            try:
                added, failed = self._run_flow(repair(id))
            except UNAVAILABLE:
                raise
            except (RedisFailure, ValueError) as error:
                self._log_limit.log(logger.error, id, "Workflow %s can't be read: %s", id, error)
                continue
            if added:
                logger.warning("Workflow %s: %s added again.", id, "1 job" if added == 1 else f"{added} jobs")
            for number, reason in failed:
                logger.error("Workflow %s: step %d has failed: %s", id, number, reason)


def taken() -> Flow[list[str]]:
    """Return the workflows to look at now. One round trip."""
    ids = yield store.TAKE_CHECKS(list_key(), store.CHECKED_WORKFLOWS, store.NEXT_CHECK)
    return [id.decode("utf-8", "replace") for id in ids]


def forget_expired() -> Flow[bool]:
    """Take those of some workflows off the list that have expired, and tell whether many had.

    They are chosen at random, as Redis chooses keys to look for expired ones. Two round trips, and one more if some
    have expired.
    """
    ids = yield Call("ZRANDMEMBER", list_key("listed"), SAMPLE)
    names = [id.decode("utf-8", "replace") for id in ids]
    exist = (yield Batch([Call("EXISTS", workflow_key(name, "meta")) for name in names])) if names else []
    expired = [name for name, exists in zip(names, exist, strict=True) if not exists]
    forgotten = (yield Batch([_forget(name) for name in expired])) if expired else []
    return sum(forgotten) > SAMPLE // 4


def _forget(id: str) -> ScriptCall:
    return store.FORGET(list_key(), id, store.NEVER_STARTED)


def repair(id: str) -> Flow[tuple[int, list[tuple[int, str]]]]:
    """Look at 100 steps of a workflow that were not looked at for some time. One round trip, and more for repairs.

    Return how many jobs were added, and the steps that failed, with the errors.
    """
    status, *rows = yield store.CHECK(workflow_key(id), store.GRACE, store.CHECKED_STEPS)
    if not status:
        yield _forget(id)
    elif status != b"running":
        yield Call("ZREM", list_key("checked"), id)
    unsent: list[tuple[bytes, StepJob]] = []
    sent: list[tuple[StepCall, bytes, StepJob]] = []  # with the state of each
    for number, state, text in batched(rows, 3):
        job = read_node(number, text).job
        if job and b"\n" in text:
            unsent.append((number, job))
        elif job:
            sent.append((StepCall(id, int(number)), state, job))
    added = 0
    if unsent:
        added = yield from store.put([job for _, job in unsent])
        yield store.CONFIRM(workflow_key(id), NOBODY, *(number for number, _ in unsent))
    failed = []
    reasons = yield from _reasons([job for *_, job in sent])
    for (step, state, _), error in zip(sent, reasons, strict=True):
        if error is None:
            continue
        if (yield from store.fail(step, error, expected=state)) == store.RECORDED:
            failed.append((step.number, error))
    return added, failed


def _reasons(jobs: list[StepJob]) -> Flow[list[str | None]]:
    """Return why each job is dead or gone; None for one that is neither."""
    lookups: list[Call] = []
    for job in jobs:
        keys = QueueKeys.of(Queue(job.queue).key(""))
        lookups += [Call("HEXISTS", keys.jobs, job.id), Call("ZSCORE", keys.dead, job.id)]
        lookups.append(Call("HGET", keys.reasons, job.id))
    replies = (yield Batch(lookups)) if lookups else []
    return [
        MISSING if not exists else None if died is None else (reason or b"").decode("utf-8", "replace")
        for exists, died, reason in batched(replies, 3)
    ]
