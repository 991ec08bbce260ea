"""The workflows there are."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from redis_kit.core.errors import RedisFailure
from redis_kit.core.flow import Flow
from redis_kit.core.steps import Batch, Call, CombinedBatch
from redis_kit.queues.features.workflows import calls
from redis_kit.queues.features.workflows import workflow as handles
from redis_kit.queues.features.workflows.keys import WorkflowLists
from redis_kit.queues.features.workflows.workflow import NodeInfo, Workflow, WorkflowStatus
from redis_kit.queues.queue import Queue


class Listing(NamedTuple):
    """Some workflows with their status, None if it can't be read, and how many are listed, expired ones among them."""

    workflows: list[tuple[str, WorkflowStatus | None]]
    total: int


def list_workflows(*, offset: int = 0, limit: int = 100) -> Listing:
    """Return workflows from the latest on, of the last 10,000. Two round trips."""
    listing: Listing = Queue("default").run_flow(read(offset, limit))
    return listing


def nodes(id: str, limit: int) -> list[NodeInfo]:
    """Return the first ``most`` nodes of a workflow. Two round trips for 500. Raises UnknownWorkflow."""
    workflow = Workflow(id)
    read: list[NodeInfo] = workflow.run_flow(handles.nodes(workflow, limit))
    return read


def paused_queues(nodes: Iterable[NodeInfo]) -> set[str]:
    """Return the paused ones of the queues in which steps are. One round trip, none without these steps."""
    names = sorted({node.step.queue for node in nodes if node.step and node.step.state == "due"})
    return Queue("default").run_flow(_paused(names)) if names else set()


def _paused(names: Sequence[str]) -> Flow[set[str]]:
    replies = yield CombinedBatch([Call("EXISTS", Queue(name).key("paused")) for name in names], lenient=True)
    each = zip(names, replies, strict=True)
    return {name for name, reply in each if reply and not isinstance(reply, RedisFailure)}


def read(offset: int, limit: int) -> Flow[Listing]:
    """See list_workflows()."""
    key = WorkflowLists.of().listed
    total, ids = yield Batch([Call("ZCARD", key), Call("ZREVRANGE", key, offset, offset + limit - 1)])
    names = [id.decode("utf-8", "replace") for id in ids]
    replies = (yield CombinedBatch([calls.READ_STATUS(id, 0) for id in names], lenient=True)) if names else []
    workflows: list[tuple[str, WorkflowStatus | None]] = []
    for id, reply in zip(names, replies, strict=True):
        if isinstance(reply, RedisFailure):
            workflows.append((id, None))
        elif reply:  # otherwise it has expired, and a supervisor takes it off the list
            workflows.append((id, handles.read_status(Workflow(id), reply)))
    return Listing(workflows, total)
