"""A workflow that was started: how it is doing, its end, its steps; cancelled and retried as a whole."""

from collections.abc import Sequence
from datetime import datetime
from time import monotonic
from typing import Any, Literal, NamedTuple

from redis_kit.core.flow import Flow, operation, twin
from redis_kit.core.primitive import Primitive
from redis_kit.core.steps import Pop
from redis_kit.core.values.numbers import seconds
from redis_kit.core.values.sequences import batched
from redis_kit.queues import validation
from redis_kit.queues.engine import history, message
from redis_kit.queues.features.workflows import store
from redis_kit.queues.features.workflows.step import MOST_STEPS
from redis_kit.queues.features.workflows.store import Node, StepJob
from redis_kit.queues.settings import QueueSettings

State = Literal["running", "successful", "failed", "cancelled"]
StepState = Literal["waiting", "due", "running", "successful", "failed", "cancelled"]
PAGE = 500  # nodes in one call
AGAIN = 5.0  # seconds until a lost wake-up is noticed


class WorkflowStatus(NamedTuple):
    """How a workflow is doing. ``state`` is running, successful, failed or cancelled.

    ``steps`` is the number of all steps, ``active`` that of steps that are due or run. ``failed`` also counts
    cancelled steps.
    """

    state: State
    name: str
    created: datetime
    ended: datetime | None
    steps: int
    successful: int
    failed: int
    active: int


class StepInfo(NamedTuple):
    """A step: its task, the id and queue of its job, its state, since when it is in that state, and its error.

    ``state`` is waiting (for others), due, running, successful, failed or cancelled. ``seconds`` is how long a step
    took that has ended.
    """

    number: int
    task: str
    id: str
    queue: str
    state: StepState
    since: datetime | None
    error: str = ""
    seconds: float | None = None


ReadNode = tuple[Node, StepInfo | None]  # with how a step is doing, None for a group


class Workflow(Primitive):
    """A workflow by its id: ``Workflow(id)``, as ``enqueue()`` of a chain or group returns it.

    Its methods raise UnknownWorkflow if there is none: its transaction is not committed yet, or it has expired, after
    the options ``RESULT_TTL`` and ``FAILED_RESULT_TTL``. A running workflow does not expire.
    """

    component, settings = "queues", QueueSettings

    def __init__(self, id: str) -> None:
        super().__init__(validation.identifier("id", id))

    def tag(self) -> str:
        """Return the hash tag of its keys."""
        return f"queues:workflow:{self.encoded}"

    @property
    def id(self) -> str:
        """Return its id."""
        return self.name

    @operation
    def status(self) -> Flow[WorkflowStatus]:
        """Return how the workflow is doing. One round trip."""
        return self._status()

    @operation
    def steps(self) -> Flow[list[StepInfo]]:
        """Return all steps in the order in which they were written. One round trip, and one for each 500 steps."""
        _, nodes = yield from read_nodes(self)
        return [step for _, step in nodes if step]

    @operation
    def wait_until_finished(self, timeout: float) -> Flow[bool]:
        """Wait until the workflow has ended, for at most ``timeout`` seconds (0 to 86,400). Return whether it has.

        There is no polling. One round trip if it has ended before, else three, and two more every 5 s.
        """
        deadline = monotonic() + seconds("timeout", timeout, validation.WAIT)
        while (yield from self._status(waits=True)).state == "running":
            if (left := deadline - monotonic()) <= 0:
                return False
            yield Pop(self.key("ended"), timeout=min(left, AGAIN))
        return True

    @operation
    def cancel(self) -> Flow[bool]:
        """Cancel the workflow. Return False if it has already ended, unless it was cancelled.

        No step begins any more, callbacks included. Running steps are stopped as Queue.cancel() does it; each counts as
        cancelled, though it may end before. One round trip, and one for each 100 steps that are due or run.
        """
        return (yield from store.cancel(self.name)) == store.RECORDED

    @operation
    def retry(self) -> Flow[int]:
        """Run the steps again that failed or were cancelled, and then what waits for them. Return how many.

        Steps that succeeded do not run again, nor does the callback of a group if it has run. Two round trips, and two
        for each 100 of these steps.
        """
        return store.retry(self.name)

    astatus = twin(status)
    asteps = twin(steps)
    await_until_finished = twin(wait_until_finished)
    acancel = twin(cancel)
    aretry = twin(retry)

    def _status(self, *, waits: bool = False) -> Flow[WorkflowStatus]:
        return read_status(self, (yield store.READ_STATUS(self.key(""), int(waits))))


def read_status(workflow: Workflow, reply: Sequence[Any]) -> WorkflowStatus:
    """Return the reply to read_status by names. Raises UnknownWorkflow."""
    if not reply:
        raise store.unknown(workflow.name)
    state, name, created, ended, steps, done, failed, _, active = reply
    return WorkflowStatus(
        state.decode(),
        name.decode("utf-8", "replace"),
        history.milliseconds(int(created)),
        history.milliseconds(int(ended)) if ended else None,
        int(steps),
        int(done or 0),
        int(failed or 0),
        active,
    )


def read_nodes(workflow: Workflow) -> Flow[tuple[WorkflowStatus, list[ReadNode]]]:
    """Read how a workflow is doing and its nodes, of which node 0 is the group around all others.

    Raises UnknownWorkflow.
    """
    reply = yield store.READ_STATUS(workflow.key(""), 0)
    status = read_status(workflow, reply)
    last = min(int(reply[7]), MOST_STEPS) - 1
    nodes: list[ReadNode] = []
    for first in range(0, last + 1, PAGE):
        rows = yield store.LIST_NODES(workflow.key(""), first, min(first + PAGE - 1, last))
        for number, text, state, error in batched(rows, 4):
            node = store.read_node(number, text)
            nodes.append((node, _step(node.number, node.job, state, error) if node.job else None))
    return status, nodes


def _step(number: int, job: StepJob, state: bytes, error: bytes) -> StepInfo:
    word: Any
    word, *times = state.decode("utf-8", "replace").split(" ")
    if not word.isalpha():  # the number of nodes that it waits for
        word, times = "waiting", []
    since, began, *_ = (*[history.milliseconds(int(time)) for time in times], None, None)
    seconds = (since - began).total_seconds() if since and began and word != "cancelled" else None
    text = error.decode("utf-8", "backslashreplace")
    return StepInfo(number, message.task_of(job.body), job.id, job.queue, word, since, text, seconds)
