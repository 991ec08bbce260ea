"""From parts to a graph: which step waits for which, and where its arguments come from."""

from collections import defaultdict
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Any, NamedTuple

from redis_kit.queues.errors import InvalidWorkflow
from redis_kit.queues.features.workflows.parts import Chain, Group, Part, Placeholder, Result, Step, failures
from redis_kit.queues.features.workflows.step import FAILURES, MOST_STEPS

DEEPEST = 20  # chains and groups inside each other


@dataclass
class Vertex:
    """A step or a group in a group: what waits for it, for how many it waits, and the sources of a step's arguments.

    ``keeps`` says whether another step is called with its result.
    """

    number: int
    group: int
    part: Part
    count: int = 0
    dependents: list[int] = field(default_factory=list)
    members: list[int] = field(default_factory=list)
    callback: int | None = None
    keeps: bool = False
    sources: list[tuple[int | str, Any]] = field(default_factory=list)


class _Place(NamedTuple):
    """A part, and where it begins and ends."""

    part: Part
    first: Vertex
    last: Vertex


class _Around(NamedTuple):
    """The surroundings of a part: its group, its depth, the part before, or the group whose callback it is."""

    group: int
    depth: int
    before: Part | None = None
    handles: Vertex | None = None


class Graph:
    """The steps and groups of a workflow in ``vertices``. The first is a group around all others.

    Numbers begin with ``first``. Raises InvalidWorkflow.
    """

    def __init__(self, outer: Group, *, first: int = 0) -> None:
        self.vertices: list[Vertex] = []
        self._first = first
        self._places: dict[int, _Place] = {}  # by the id of a part
        self._around: dict[int, _Around] = {}  # by the number of a step
        self._preceding: defaultdict[int, list[int]] = defaultdict(list)  # what has ended before a node begins
        self._edges: set[tuple[int, int]] = set()
        self._place(outer, _Around(first, 0)).first.count = 1
        for place in self._places.values():
            self._connect(place.part, place.first)
        self._refuse_circles()

    def __getitem__(self, number: int) -> Vertex:
        return self.vertices[number - self._first]

    def _place(self, part: Part, around: _Around) -> _Place:
        if around.depth > DEEPEST:
            raise InvalidWorkflow(f"Chains and groups can be at most {DEEPEST} deep inside each other.")
        if id(part) in self._places:
            raise InvalidWorkflow(f"{part!r} is in the workflow twice. Make a step for each call.")
        place = self._place_chain(part, around) if isinstance(part, Chain) else self._place_vertex(part, around)
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

    def _place_vertex(self, part: Part, around: _Around) -> _Place:
        if len(self.vertices) == MOST_STEPS:
            raise InvalidWorkflow(f"A workflow has at most {MOST_STEPS:,} steps and groups.")
        vertex = Vertex(self._first + len(self.vertices), around.group, part)
        self.vertices.append(vertex)
        place = _Place(part, vertex, vertex)
        if not isinstance(part, Group):
            self._around[vertex.number] = around
            return place
        inside = around._replace(group=vertex.number, depth=around.depth + 1)
        for member in part.parts:
            first = self._place(member, inside).first
            vertex.members.append(first.number)
            first.count += 1
        if part.callback is None:
            return place
        callback = self._place(part.callback, _Around(around.group, inside.depth, handles=vertex))
        vertex.callback = callback.first.number
        callback.first.count += 1
        self._preceding[callback.first.number].append(vertex.number)
        return place._replace(last=callback.last)

    def _follow(self, before: Vertex, after: Vertex) -> None:
        if (before.number, after.number) not in self._edges:
            self._edges.add((before.number, after.number))
            before.dependents.append(after.number)
            after.count += 1

    def _connect(self, part: Part, vertex: Vertex) -> None:
        for other in part.waits_for:
            self._wait_for(vertex, other)
        if isinstance(part, Step):
            given: list[tuple[int | str, Any]] = [*enumerate(part.args), *part.kwargs.items()]
            vertex.sources = [(place, self._source(vertex, value)) for place, value in given if is_source(value)]

    def _source(self, vertex: Vertex, value: Any) -> Any:
        if isinstance(value, list):
            return [self._source(vertex, item) for item in value]
        if isinstance(value, Result):
            self._wait_for(vertex, value.part)
            return self._result(value.part)
        around = self._around[vertex.number]
        if value is failures:
            if around.handles is None:
                raise InvalidWorkflow(f"{vertex.part!r} is not the callback of a group, so there are no failures.")
            return {FAILURES: around.handles.number}
        if around.handles is not None:
            return self._results(around.handles.part)
        if around.before is None:
            raise InvalidWorkflow(f"{vertex.part!r} has the argument previous, but nothing comes before it.")
        return self._result(around.before)

    def _result(self, part: Part) -> Any:
        if isinstance(part, Chain):
            return self._result(part.parts[-1])
        if isinstance(part, Group):
            return self._results(part) if part.callback is None else self._result(part.callback)
        vertex = self._places[id(part)].last
        vertex.keeps = True
        return vertex.number

    def _results(self, group: Any) -> list[Any]:
        return [self._result(part) for part in group.parts]

    def _wait_for(self, vertex: Vertex, other: Part) -> None:
        """Let a node wait for a part, unless that has ended anyway before the node's group begins."""
        if id(other) not in self._places:
            raise InvalidWorkflow(f"{vertex.part!r} waits for {other!r}, which is not in this workflow.")
        last = self._places[id(other)].last
        if self._is_in(last, vertex.group):
            self._follow(last, vertex)
        elif not self._precedes(last, vertex):
            wrong = f"{vertex.part!r} waits for {other!r}, which is in another group"
            raise InvalidWorkflow(f"{wrong}. Let the whole group wait, or put both into one.")

    def _is_in(self, vertex: Vertex, group: int) -> bool:
        while vertex.group != group and vertex.number != self._first:
            vertex = self[vertex.group]
        return vertex.number != self._first

    def _precedes(self, vertex: Vertex, other: Vertex) -> bool:
        waiting, seen = [other.number], set()
        while waiting:
            number = waiting.pop()
            if number in seen:
                continue
            seen.add(number)
            for before in self._preceding[number]:
                if before == vertex.number or self._is_in(vertex, before):
                    return True
            waiting += [*self._preceding[number], self[number].group]
        return False

    def _refuse_circles(self) -> None:
        order: TopologicalSorter[int] = TopologicalSorter()  # of events: a node begins (number) or ends (~number)
        for vertex in self.vertices:
            begin, end = vertex.number, ~vertex.number
            for following in vertex.members or [end]:
                order.add(following, begin)
            for following in [*vertex.dependents, *([] if vertex.callback is None else [vertex.callback])]:
                order.add(following, end)
            if begin != self._first:
                order.add(~vertex.group, end)
        try:
            order.prepare()
        except CycleError as error:
            numbers = sorted({max(event, ~event) for event in error.args[1]})
            steps = [self[number].part for number in numbers if isinstance(self[number].part, Step)]
            raise InvalidWorkflow(f"Steps wait for each other: {', '.join(map(repr, steps[:5]))}.") from error


def is_source(value: Any) -> bool:
    """Return whether an argument stands for a value that is known later: a placeholder, or a list of placeholders."""
    if isinstance(value, list):
        return bool(value) and all(map(is_source, value))
    return isinstance(value, Placeholder)
