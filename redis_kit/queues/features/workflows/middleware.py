"""A step of a workflow in a worker: its workflow is asked before its task runs, and told after.

The order makes each death harmless: the workflow records the end of the step, then the jobs that became due are added,
then the job of the step is acknowledged. If a process dies in between, the job is delivered again; its workflow says
that the step has ended, and the jobs that became due are added again, which does nothing to those that exist.
"""

import logging
from collections.abc import Callable, Sequence
from operator import attrgetter
from threading import Event
from typing import Any, TypeVar

from redis_kit.core.errors import RedisFailure
from redis_kit.core.flow import Flow
from redis_kit.queues.engine import claim
from redis_kit.queues.engine.done import Ack
from redis_kit.queues.engine.message import Message
from redis_kit.queues.errors import Cancelled, PayloadTooLarge, UnknownWorkflow
from redis_kit.queues.features.workflows import store
from redis_kit.queues.features.workflows.start import CurrentWorkflow, running
from redis_kit.queues.features.workflows.step import StepCall, filled, of_call
from redis_kit.queues.features.workflows.store import Begun, Node
from redis_kit.queues.queue import Queue
from redis_kit.queues.tasks import result as results
from redis_kit.queues.worker.run.attempt import SUCCEEDED, Attempt, Failed, Middleware
from redis_kit.queues.worker.shared import failpoints
from redis_kit.queues.worker.shared.failures import UNAVAILABLE, until_answered
from redis_kit.queues.worker.shared.worker_queue import RecordedEnd, WorkerQueue

logger = logging.getLogger("redis_kit.worker")
Answer = TypeVar("Answer")


class WorkflowStep:
    """One attempt of a step: its workflow, the stored form of its result, and the steps that it adds."""

    def __init__(self, source: WorkerQueue, call: StepCall, given_up: Event) -> None:
        self.call, self.workflow = call, CurrentWorkflow(call.workflow)
        self.value = b""
        self.nodes: Sequence[Node] = ()
        self._source, self._given_up = source, given_up

    def ask(self, flow: Callable[[], Flow[Answer]]) -> Answer:
        """Carry out a flow. It waits for the end of an outage, until the worker gives up."""
        answer: Answer = until_answered(lambda: self._source.run_flow(flow()), self._given_up)
        return answer

    def finish(self) -> None:
        """Record that the step succeeded, and add the jobs that are due now. Three round trips, more for many jobs."""
        how = self.ask(lambda: store.finish(self.call, self.value, self.nodes))
        if how != store.RECORDED:
            why = "the workflow has expired or was lost"
            if how == store.IGNORED:
                why = "was cancelled or had failed before"
            logger.info("Workflow %s: step %d has succeeded, but %s.", self.call.workflow, self.call.number, why)

    def repeatable(self, end: Ack) -> RecordedEnd:
        """Return the call that records the end of the step again, for a server that lost it.

        Steps that it added are not kept. So a step with any is made ready again.
        """
        source, call, value, added = self._source, self.call, self.value, bool(self.nodes)

        def record() -> None:
            if added:
                source.put_back([end.token + b"/" + end.id])
                return
            source.run_flow(store.finish(call, value))
            source.run_flow(claim.acknowledge(source, end.token.partition(b"/")[0].decode(), [end]))

        return RecordedEnd(end.token, end.id, end.value, record)


class WorkflowSteps(Middleware):
    """Asks the workflow of a step before its task runs, and tells it when the task has succeeded."""

    is_used = attrgetter("call.extra")

    def __call__(self, attempt: Attempt) -> Any:
        """See Middleware. One round trip before the task."""
        step = WorkflowStep(attempt.source, of_call(attempt.call), self.worker.given_up)
        attempt.repeatable, attempt.extra = step.repeatable, step
        begun = step.ask(lambda: store.begin(step.call))
        failpoints.reach("step_begun")
        if begun.how == store.ENDED:
            step.value = begun.value
            attempt.value = begun.value if attempt.recorder else b""
            return SUCCEEDED
        if begun.how not in (store.BEGUN, store.BEGUN_AGAIN):
            return Failed(_refusal(begun.how, step.call.workflow), attempt.task, final=True)
        attempt.call = call = _filled(attempt.call, step.call, begun)
        attempt.args, attempt.kwargs = call.args, call.kwargs
        token = running.set(step.workflow)
        try:
            ending = self.call_next(attempt)
        finally:
            running.reset(token)
        if ending is SUCCEEDED:
            self.worker.board.lift(attempt.slot)
            step.finish()
        return ending


class StepResults(Middleware):
    """Takes in what the task of a step returned, and the steps that it added: one round trip if there are any.

    Raises InvalidWorkflow, NotSerializable and PayloadTooLarge.
    """

    is_used = attrgetter("call.extra")

    def __call__(self, attempt: Attempt) -> Any:
        """See Middleware."""
        returned = self.call_next(attempt)
        self.worker.board.lift(attempt.slot)
        step = attempt.extra
        step.value = attempt.value
        if step.call.keeps and not step.value:
            _, step.value = results.dump_value(returned)
        step.nodes = step.ask(step.workflow.added)
        return returned


def report_failure(source: Queue, step: StepCall, error: str) -> None:
    """Tell a workflow that a step's job is dead. Two round trips, or more for many jobs; a repeat is safe.

    If the workflow can't be told, because something else wrote to its keys, workers find out when they look after it.
    """
    try:
        source.run_flow(store.fail(step, error))
    except UNAVAILABLE:
        raise
    except RedisFailure as failure:
        logger.error("Workflow %s: the failure of step %d could not be recorded: %s", *step[:2], failure)  # noqa: TRY400


def _refusal(how: int, workflow: str) -> BaseException:
    if how == store.GONE:
        return UnknownWorkflow(f"workflow {workflow} does not exist: it has expired or was lost")
    if how == store.TOO_LARGE:
        text = f"the results for this step have more than {store.MOST_RESULTS:,} bytes, which is the most allowed"
        return PayloadTooLarge(text)
    why = "was cancelled" if how == store.CANCELLED else "does not wait for this step now"
    return Cancelled(f"The workflow of the job {why}.")


def _filled(call: Message, step: StepCall, begun: Begun) -> Message:
    """Return the call with the results that it refers to."""
    args: Any = list(call.args)
    kwargs: Any = dict(call.kwargs)
    for place, source in step.sources:
        (kwargs if isinstance(place, str) else args)[place] = filled(source, begun.values, begun.failures)
    return call._replace(args=args, kwargs=kwargs)
