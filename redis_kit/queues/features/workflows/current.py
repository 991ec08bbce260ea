"""The workflow of the running job, to which it may add steps."""

from collections.abc import Sequence
from contextvars import ContextVar

from redis_kit.core.flow import Flow
from redis_kit.queues.errors import InvalidWorkflow
from redis_kit.queues.features.workflows import calls
from redis_kit.queues.features.workflows.calls import Node
from redis_kit.queues.features.workflows.graph import Graph
from redis_kit.queues.features.workflows.parts import Group, Part
from redis_kit.queues.features.workflows.start import packed
from redis_kit.queues.features.workflows.step import MOST_STEPS, StepCall
from redis_kit.queues.features.workflows.workflow import Workflow
from redis_kit.queues.tasks.task import Step as AnyPart

MOST_ADDED = 1000  # steps
MOST_BYTES = 1024 * 1024


class CurrentWorkflow(Workflow):
    """The workflow of the running job, as current_workflow() returns it."""

    def __init__(self, step: StepCall) -> None:
        super().__init__(step.workflow)
        self._parts: list[Part] = []

    def add(self, *parts: AnyPart) -> None:
        """Add steps, chains or groups to run when this step has succeeded, before what waits for it. No round trip.

        They start side by side. If the step fails, or its worker dies, nothing is added; its next attempt adds them
        again. A step can add 1000 steps of 1 MiB in all. Raises InvalidWorkflow, InvalidArguments, NotSerializable,
        PayloadTooLarge.
        """
        parts_now = [*self._parts, *Group(parts).parts]
        _packed(parts_now, self.name, 0)
        self._parts = parts_now

    def added(self) -> Flow[Sequence[Node]]:
        """Return what was added as nodes. One round trip if there are any. Raises InvalidWorkflow."""
        if not self._parts:
            return ()
        count = len(_packed(self._parts, self.name, 0))
        first: int = yield calls.RESERVE(self.key(""), count, MOST_STEPS)
        if first < 0:
            raise InvalidWorkflow(f"A workflow has at most {MOST_STEPS:,} steps and groups.")
        return _packed(self._parts, self.name, first) if first else ()


#: The workflow of the running job.
running: ContextVar[CurrentWorkflow | None] = ContextVar("redis_kit_current_workflow", default=None)


def current_workflow() -> CurrentWorkflow | None:
    """Return the workflow of the running job; None for a job of no workflow, and outside of a worker."""
    return running.get()


def _packed(parts: Sequence[Part], workflow: str, first: int) -> list[Node]:
    nodes = packed(Graph(Group(parts), first=first), workflow)
    if len(nodes) > MOST_ADDED + 1 or sum(len(node.job.body) for node in nodes if node.job) > MOST_BYTES:
        raise InvalidWorkflow(f"A step can add at most {MOST_ADDED:,} steps of {MOST_BYTES:,} bytes in all.")
    return nodes
