"""The duty of workflows: it repairs those whose jobs are gone or were never added, and forgets expired ones.

Each end of a step is reported by the process that recorded it. This finds what was not reported: jobs that were deleted
or cancelled, or whose last worker died before it could report, and steps whose jobs were never added.
"""

import logging
from collections.abc import Callable
from time import monotonic
from typing import Any, NamedTuple

from redis_kit.core.errors import RedisFailure
from redis_kit.core.flow import Flow
from redis_kit.core.logs.rate_limit import LogRateLimit
from redis_kit.core.steps import Batch, Call
from redis_kit.core.values.sequences import batched
from redis_kit.queues.features.workflows import calls, transitions
from redis_kit.queues.features.workflows.calls import StepJob, read_node
from redis_kit.queues.features.workflows.keys import WorkflowKeys, WorkflowLists
from redis_kit.queues.features.workflows.step import StepCall
from redis_kit.queues.keys import QueueKeys
from redis_kit.queues.worker.shared.reconnect import UNAVAILABLE

logger = logging.getLogger("redis_kit.worker")
INTERVAL = 15.0  # seconds between two runs
SOON = 1.0  # seconds to the next run if there was more than one run can do
NOBODY = -1  # made no step due
SAMPLE = 10  # workflows of the list that are looked at, whether they have expired
MISSING = "its job is gone: it was cancelled or deleted, or the server lost it with its data"


class Repaired(NamedTuple):
    """The repairs of a workflow: how many jobs were added, and the steps that failed, with the errors."""

    id: str
    added: int
    failed: list[tuple[int, str]]


class _Sent(NamedTuple):
    step: StepCall
    state: bytes
    job: StepJob


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
        if many_expired or len(ids) == calls.CHECKED_WORKFLOWS:
            self.due = monotonic() + SOON
        for id in ids:
            try:
                _log(self._run_flow(repair(id)))
            except UNAVAILABLE:
                raise
            except (RedisFailure, ValueError) as error:
                self._log_limit.log(logger.error, id, "Workflow %s can't be read: %s", id, error)


def _log(repaired: Repaired) -> None:
    if repaired.added:
        jobs = "1 job" if repaired.added == 1 else f"{repaired.added} jobs"
        logger.warning("Workflow %s: %s added again.", repaired.id, jobs)
    for number, error in repaired.failed:
        logger.error("Workflow %s: step %d has failed: %s", repaired.id, number, error)


def taken() -> Flow[list[str]]:
    """Return the workflows to look at now. One round trip."""
    ids = yield calls.TAKE_CHECKS(None, calls.CHECKED_WORKFLOWS, calls.NEXT_CHECK)
    return [id.decode("utf-8", "replace") for id in ids]


def forget_expired() -> Flow[bool]:
    """Take those of some workflows off the list that have expired, and tell whether many had.

    They are chosen at random, as Redis chooses keys to look for expired ones. Two round trips, and one more if some
    have expired.
    """
    ids = yield Call("ZRANDMEMBER", WorkflowLists.of().listed, SAMPLE)
    names = [id.decode("utf-8", "replace") for id in ids]
    exist = (yield Batch([Call("EXISTS", WorkflowKeys.of(name).meta) for name in names])) if names else []
    expired = [name for name, exists in zip(names, exist, strict=True) if not exists]
    forgotten = (yield Batch([calls.FORGET(None, name, calls.NEVER_STARTED) for name in expired])) if expired else []
    return sum(forgotten) > SAMPLE // 4


def repair(id: str) -> Flow[Repaired]:
    """Look at 100 steps of a workflow that were not looked at for some time. One round trip, and more for repairs."""
    status, *rows = yield calls.CHECK(id, calls.GRACE, calls.CHECKED_STEPS)
    if not status:
        yield calls.FORGET(None, id, calls.NEVER_STARTED)
    elif status != b"running":
        yield Call("ZREM", WorkflowLists.of().checked, id)
    unsent: list[tuple[bytes, StepJob]] = []
    sent: list[_Sent] = []
    for number, state, text in batched(rows, 3):
        job = read_node(number, text).job
        if job and b"\n" in text:
            unsent.append((number, job))
        elif job:
            sent.append(_Sent(StepCall(id, int(number)), state, job))
    added = 0
    if unsent:
        added = len((yield from transitions.put([job for _, job in unsent])))
        yield calls.CONFIRM(id, NOBODY, *(number for number, _ in unsent))
    failed = []
    for step, state, error in (yield from _dead(sent)):
        how, page = yield from transitions.fail(step, error, expected=state)
        if how == transitions.RECORDED:
            failed.append((step.number, error))
            added += len((yield from transitions.send(id, step.number, page)))
    return Repaired(id, added, failed)


def _dead(sent: list[_Sent]) -> Flow[list[tuple[StepCall, bytes, str]]]:
    """Return those steps whose jobs are dead or gone, and why."""
    if not sent:
        return []
    lookups: list[Any] = []
    for item in sent:
        keys = QueueKeys.of(transitions.base_of(item.job.queue))
        id = item.job.id
        lookups += [Call("HEXISTS", keys.jobs, id), Call("ZSCORE", keys.dead, id), Call("HGET", keys.reasons, id)]
    replies = iter((yield Batch(lookups)))
    ended = []
    for item, exists, died, reason in zip(sent, replies, replies, replies, strict=True):
        if not exists or died is not None:
            text = (reason or b"").decode("utf-8", "replace") if exists else MISSING
            ended.append((item.step, item.state, text))
    return ended
