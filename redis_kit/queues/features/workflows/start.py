"""Workflows on their way to Redis: the calls of their steps are packed, and then stored."""

from typing import Any

from django.db import transaction

from redis_kit.core import conf
from redis_kit.queues import validation
from redis_kit.queues.engine import ids
from redis_kit.queues.engine.spread import spread
from redis_kit.queues.errors import InvalidWorkflow
from redis_kit.queues.features.workflows import transitions
from redis_kit.queues.features.workflows.calls import Node, StepJob
from redis_kit.queues.features.workflows.graph import Graph, Vertex, is_source
from redis_kit.queues.features.workflows.parts import Group, Part, Step, backend_of, steps_of
from redis_kit.queues.features.workflows.step import StepCall
from redis_kit.queues.features.workflows.workflow import Workflow
from redis_kit.queues.tasks.enqueue import WaitingCall, body_of, check_call, lane_of_call
from redis_kit.queues.tasks.options import bound
from redis_kit.queues.tasks.task import Task, extended


def enqueue(part: Part) -> Workflow:
    """Start a workflow, in a transaction after its commit. See Part.enqueue()."""
    workflow, name, nodes = _prepared(part)

    def send() -> None:
        workflow.run_flow(transitions.create(workflow.name, name, nodes))

    if transaction.get_connection().in_atomic_block and any(map(_waits, steps_of(part))):
        transaction.on_commit(WaitingCall(send, lambda: f"the workflow {name}"))
    else:
        send()
    return workflow


async def aenqueue(part: Part) -> Workflow:
    """See enqueue()."""
    workflow, name, nodes = _prepared(part)
    await workflow.arun_flow(transitions.create(workflow.name, name, nodes))
    return workflow


def packed(graph: Graph, workflow: str) -> list[Node]:
    """Return the nodes of a graph as they are stored.

    Raises InvalidWorkflow, InvalidArguments, NotSerializable, PayloadTooLarge.
    """
    return [
        Node(
            vertex.number,
            vertex.group,
            vertex.count,
            vertex.dependents,
            _job(vertex, vertex.part, workflow) if isinstance(vertex.part, Step) else None,
            [f"g{number}" if isinstance(graph[number].part, Group) else str(number) for number in vertex.members],
            vertex.callback,
        )
        for vertex in graph.vertices
    ]


def _prepared(part: Part) -> tuple[Workflow, str, list[Node]]:
    conf.warn_unless_installed()
    workflow = Workflow(ids.new_job())
    graph = Graph(Group([part]))
    first, *others = steps_of(part)
    name = f"{first.task.module_path} + {len(others)}" if others else first.task.module_path
    return workflow, name, packed(graph, workflow.name)


def _job(vertex: Vertex, step: Step, workflow: str) -> StepJob:
    task = extended(step.task)
    backend = _validated(task)
    check_call(task, step.args, step.kwargs)
    _check_limits(task, step)
    places = {place for place, _ in vertex.sources}
    args = [None if place in places else value for place, value in enumerate(step.args)]
    kwargs = {name: None if name in places else value for name, value in step.kwargs.items()}
    call = StepCall(workflow, vertex.number, vertex.keeps, tuple(vertex.sources))
    body = body_of(task, args, kwargs, call.extra())
    lane = lane_of_call(task, args, kwargs)
    queue = spread().place(task.queue_name, lane=lane) or task.queue_name
    id = ids.of_step(workflow, vertex.number, queue)
    alias = backend if task.store_result else None
    return StepJob(id, queue, task.priority, _due(task), alias, lane, body)


def _check_limits(task: Task[..., Any], step: Step) -> None:
    """Raise InvalidWorkflow if a limit names an argument whose value is known only when the step begins."""
    names = {name for limit in task.limits for name in limit.by}
    if not names:
        return
    for name, value in bound(task, step.args, step.kwargs).arguments.items():
        if name in names and is_source(value):
            raise InvalidWorkflow(
                f"{task.module_path} has a limit by {name}, which is {value!r} in this step: a step has its limits "
                f"before any result is known. Pass a value as {name}, or enqueue the task from another one."
            )


def _validated(task: Task[..., Any]) -> str:
    """Return the alias of a task's backend. Raises InvalidWorkflow if a step can't call the task."""
    backend = backend_of(task)
    if task.unique is not False:
        raise InvalidWorkflow(f"{task.module_path} is unique, so it can't be a step: its job may be another call's.")
    _ = backend.chosen
    backend.validate_task(task)
    return task.backend


def _due(task: Task[..., Any]) -> str:
    if task.run_after is not None:
        return str(validation.moment(task.run_after))
    wait = validation.milliseconds(task.run_in or 0)
    return f"+{wait}" if wait else "0"


def _waits(step: Step) -> bool:
    task = extended(step.task)
    return bool(task.enqueue_on_commit and task.get_backend().chosen.ENQUEUE_ON_COMMIT)
