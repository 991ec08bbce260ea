"""Workflows on their way to Redis: their parts become nodes with jobs, and start, or are added to the running one."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Any, NamedTuple

from django.db import transaction
from django.utils.module_loading import import_string

from redis_kit.core import conf
from redis_kit.core.flow import Flow
from redis_kit.queues import validation
from redis_kit.queues.engine import ids
from redis_kit.queues.engine.spread import spread
from redis_kit.queues.errors import InvalidWorkflow
from redis_kit.queues.features.workflows import store
from redis_kit.queues.features.workflows.parts import Chain, Group, Part, Placeholder, Result, Step, failures
from redis_kit.queues.features.workflows.step import FAILURES, MOST_STEPS, StepCall
from redis_kit.queues.features.workflows.store import Node, StepJob
from redis_kit.queues.features.workflows.workflow import Workflow
from redis_kit.queues.framework import BACKEND
from redis_kit.queues.tasks.enqueue import WaitingCall, body_of, check_call, lane_of_call
from redis_kit.queues.tasks.options import bound
from redis_kit.queues.tasks.task import Step as AnyPart
from redis_kit.queues.tasks.task import Task, extended

DEEPEST = 20  # chains and groups inside each other
MOST_ADDED = 1000  # steps
MOST_BYTES = 1024 * 1024


class CurrentWorkflow(Workflow):
    """The workflow of the running job, as current_workflow() returns it."""

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self._parts: list[Part] = []

    def add(self, *parts: AnyPart) -> None:
        """Add steps, chains or groups to run when this step has succeeded, before what waits for it. No round trip.

        They start side by side. If the step fails, or its worker dies, nothing is added; its next attempt adds them
        again. A step can add 1000 steps of 1 MiB in all. Raises InvalidWorkflow, InvalidArguments, NotSerializable,
        PayloadTooLarge.
        """
        parts_now = [*self._parts, *Group(parts).parts]
        _additions(parts_now, self.name, 0)
        self._parts = parts_now

    def added(self) -> Flow[Sequence[Node]]:
        """Return what was added as nodes. One round trip if there are any. Raises InvalidWorkflow."""
        if not self._parts:
            return ()
        count = len(_additions(self._parts, self.name, 0))
        first: int = yield store.RESERVE(self.key(""), count, MOST_STEPS)
        if first < 0:
            raise InvalidWorkflow(f"A workflow has at most {MOST_STEPS:,} steps and groups.")
        return _additions(self._parts, self.name, first) if first else ()


#: The workflow of the running job.
running: ContextVar[CurrentWorkflow | None] = ContextVar("redis_kit_current_workflow", default=None)


def current_workflow() -> CurrentWorkflow | None:
    """Return the workflow of the running job; None for a job of no workflow, and outside of a worker."""
    return running.get()


def enqueue(part: Part) -> Workflow:
    """Start a workflow, in a transaction after its commit. See Part.enqueue()."""
    workflow, name, nodes = _prepared(part)

    def send() -> None:
        workflow.run_flow(store.create(workflow.name, name, nodes))

    if transaction.get_connection().in_atomic_block and any(_waits(node.part.task) for node in nodes if node.job):
        transaction.on_commit(WaitingCall(send, lambda: f"the workflow {name}"))
    else:
        send()
    return workflow


async def aenqueue(part: Part) -> Workflow:
    """See enqueue()."""
    workflow, name, nodes = _prepared(part)
    await workflow.arun_flow(store.create(workflow.name, name, nodes))
    return workflow


def packed(parts: Iterable[Part], workflow: str, *, first: int = 0) -> list[Node]:
    """Return the nodes of parts that run side by side. Numbers begin with ``first``, a group around all parts.

    Raises InvalidWorkflow, InvalidArguments, NotSerializable, PayloadTooLarge.
    """
    nodes = _Graph(Group(parts), first).nodes
    for node in nodes:
        if isinstance(node.part, Step):
            node.job = _job(node, node.part, workflow)
    return nodes


def _prepared(part: Part) -> tuple[Workflow, str, list[Node]]:
    conf.warn_unless_installed()
    workflow = Workflow(ids.new_job())
    nodes = packed([part], workflow.name)
    name, *others = [node.part.task.module_path for node in nodes if node.job]
    return workflow, f"{name} + {len(others)}" if others else name, nodes


def _waits(task: Any) -> bool:
    task = extended(task)
    return bool(task.enqueue_on_commit and task.get_backend().chosen.ENQUEUE_ON_COMMIT)


def _additions(parts: Sequence[Part], workflow: str, first: int) -> list[Node]:
    nodes = packed(parts, workflow, first=first)
    if len(nodes) > MOST_ADDED + 1 or sum(len(node.job.body) for node in nodes if node.job) > MOST_BYTES:
        raise InvalidWorkflow(f"A step can add at most {MOST_ADDED:,} steps of {MOST_BYTES:,} bytes in all.")
    return nodes


class _Place(NamedTuple):
    """A part, and where it begins and ends."""

    part: Part
    first: Node
    last: Node


class _Around(NamedTuple):
    """The surroundings of a part: its group, its depth, the part before, or the group whose callback it is."""

    group: int
    depth: int
    before: Part | None = None
    handles: Node | None = None


class _Graph:
    """The nodes of parts, each connected with those that it waits for."""

    def __init__(self, outer: Group, first: int) -> None:
        self.nodes: list[Node] = []
        self._first = first
        self._places: dict[int, _Place] = {}  # by the id of a part
        self._around: dict[int, _Around] = {}  # by the number of a step
        self._preceding: defaultdict[int, list[int]] = defaultdict(list)  # what has ended before a node begins
        self._edges: set[tuple[int, int]] = set()
        self._place(outer, _Around(first, 0)).first.waits = 1
        for place in self._places.values():
            self._connect(place.part, place.first)
        self._refuse_circles()

    def __getitem__(self, number: int) -> Node:
        return self.nodes[number - self._first]

    def _place(self, part: Part, around: _Around) -> _Place:
        if around.depth > DEEPEST:
            raise InvalidWorkflow(f"Chains and groups can be at most {DEEPEST} deep inside each other.")
        if id(part) in self._places:
            raise InvalidWorkflow(f"{part!r} is in the workflow twice. Make a step for each call.")
        place = self._place_chain(part, around) if isinstance(part, Chain) else self._place_node(part, around)
        self._places[id(part)] = place
        return place

    def _place_chain(self, chain: Chain, around: _Around) -> _Place:
        places: list[_Place] = []
        here = around._replace(depth=around.depth + 1)
        for part in chain.parts:
            places.append(self._place(part, here))
            here = _Around(around.group, here.depth, part)
        for before, after in pairwise(places):
            self._follow(before.last, after.first)
            self._preceding[after.first.number].append(before.last.number)
        return _Place(chain, places[0].first, places[-1].last)

    def _place_node(self, part: Part, around: _Around) -> _Place:
        if len(self.nodes) == MOST_STEPS:
            raise InvalidWorkflow(f"A workflow has at most {MOST_STEPS:,} steps and groups.")
        node = Node(self._first + len(self.nodes), around.group, part=part)
        self.nodes.append(node)
        place = _Place(part, node, node)
        if not isinstance(part, Group):
            self._around[node.number] = around
            return place
        inside = around._replace(group=node.number, depth=around.depth + 1)
        for member in part.parts:
            first = self._place(member, inside).first
            node.members.append(f"g{first.number}" if isinstance(first.part, Group) else str(first.number))
            first.waits += 1
        if part.callback is None:
            return place
        callback = self._place(part.callback, _Around(around.group, inside.depth, handles=node))
        node.callback = callback.first.number
        callback.first.waits += 1
        self._preceding[callback.first.number].append(node.number)
        return place._replace(last=callback.last)

    def _follow(self, before: Node, after: Node) -> None:
        if (before.number, after.number) not in self._edges:
            self._edges.add((before.number, after.number))
            before.dependents.append(after.number)
            after.waits += 1

    def _connect(self, part: Part, node: Node) -> None:
        for other in part.waits_for:
            self._wait_for(node, other)
        if isinstance(part, Step):
            given: list[tuple[int | str, Any]] = [*enumerate(part.args), *part.kwargs.items()]
            node.sources = [(place, self._source(node, value)) for place, value in given if _is_source(value)]

    def _source(self, node: Node, value: Any) -> Any:
        if isinstance(value, list):
            return [self._source(node, item) for item in value]
        if isinstance(value, Result):
            self._wait_for(node, value.part)
            return self._result(value.part)
        around = self._around[node.number]
        if value is failures:
            if around.handles is None:
                raise InvalidWorkflow(f"{node.part!r} is not the callback of a group, so there are no failures.")
            return {FAILURES: around.handles.number}
        if around.handles is not None:
            return self._results(around.handles.part)
        if around.before is None:
            raise InvalidWorkflow(f"{node.part!r} has the argument previous, but nothing comes before it.")
        return self._result(around.before)

    def _result(self, part: Part) -> Any:
        if isinstance(part, Chain):
            return self._result(part.parts[-1])
        if isinstance(part, Group):
            return self._results(part) if part.callback is None else self._result(part.callback)
        node = self._places[id(part)].last
        node.keeps = True
        return node.number

    def _results(self, group: Any) -> list[Any]:
        return [self._result(part) for part in group.parts]

    def _wait_for(self, node: Node, other: Part) -> None:
        """Let a node wait for a part, unless that has ended anyway before the node's group begins."""
        if id(other) not in self._places:
            raise InvalidWorkflow(f"{node.part!r} waits for {other!r}, which is not in this workflow.")
        last = self._places[id(other)].last
        if self._is_in(last, node.group):
            self._follow(last, node)
        elif not self._precedes(last, node):
            wrong = f"{node.part!r} waits for {other!r}, which is in another group"
            raise InvalidWorkflow(f"{wrong}. Let the whole group wait, or put both into one.")

    def _is_in(self, node: Node, group: int) -> bool:
        while node.group != group and node.number != self._first:
            node = self[node.group]
        return node.number != self._first

    def _precedes(self, node: Node, other: Node) -> bool:
        waiting, seen = [other.number], set()
        while waiting:
            number = waiting.pop()
            if number in seen:
                continue
            seen.add(number)
            for before in self._preceding[number]:
                if before == node.number or self._is_in(node, before):
                    return True
            waiting += [*self._preceding[number], self[number].group]
        return False

    def _refuse_circles(self) -> None:
        order: TopologicalSorter[int] = TopologicalSorter()  # of events: a node begins (number) or ends (~number)
        for node in self.nodes:
            begin, end = node.number, ~node.number
            for following in node.member_numbers or [end]:
                order.add(following, begin)
            for following in node.followers:
                order.add(following, end)
            if begin != self._first:
                order.add(~node.group, end)
        try:
            order.prepare()
        except CycleError as error:
            numbers = sorted({max(event, ~event) for event in error.args[1]})
            steps = [self[number].part for number in numbers if isinstance(self[number].part, Step)]
            raise InvalidWorkflow(f"Steps wait for each other: {', '.join(map(repr, steps[:5]))}.") from error


def _job(node: Node, step: Step, workflow: str) -> StepJob:
    task = extended(step.task)
    _check_task(task)
    check_call(task, step.args, step.kwargs)
    _check_limits(task, step)
    places = {place for place, _ in node.sources}
    args = [None if place in places else value for place, value in enumerate(step.args)]
    kwargs = {name: None if name in places else value for name, value in step.kwargs.items()}
    call = StepCall(workflow, node.number, node.keeps, tuple(node.sources))
    body = body_of(task, args, kwargs, call.extra())
    lane = lane_of_call(task, args, kwargs)
    queue = spread().place(task.queue_name, lane=lane) or task.queue_name
    id = ids.of_step(workflow, node.number, queue)
    backend = task.backend if task.store_result else None
    delay = 0 if task.run_in is None else validation.milliseconds(task.run_in)
    due = 0 if task.run_after is None else validation.moment(task.run_after)
    return StepJob(id, queue, task.priority, delay, due, backend, lane, body)


def _check_limits(task: Task[..., Any], step: Step) -> None:
    """Raise InvalidWorkflow if a limit names an argument whose value is known only when the step begins."""
    names = {name for limit in task.limits for name in limit.by}
    if not names:
        return
    for name, value in bound(task, step.args, step.kwargs).arguments.items():
        if name in names and _is_source(value):
            raise InvalidWorkflow(
                f"{task.module_path} has a limit by {name}, which is {value!r} in this step: a step has its limits "
                f"before any result is known. Pass a value as {name}, or enqueue the task from another one."
            )


def _check_task(task: Task[..., Any]) -> None:
    """Raise InvalidWorkflow if a step can't call the task."""
    backend = task.get_backend()
    if not isinstance(backend, import_string(BACKEND)):
        kind = f"{type(backend).__module__}.{type(backend).__qualname__}"
        raise InvalidWorkflow(f"The backend of {task.module_path}, {kind}, knows no workflows; use {BACKEND}.")
    if task.unique is not False:
        raise InvalidWorkflow(f"{task.module_path} is unique, so it can't be a step: its job may be another call's.")
    _ = backend.chosen
    backend.validate_task(task)


def _is_source(value: Any) -> bool:
    """Return whether an argument stands for a value that is known later: a placeholder, or a list of placeholders."""
    if isinstance(value, list):
        return bool(value) and all(map(_is_source, value))
    return isinstance(value, Placeholder)
