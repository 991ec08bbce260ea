"""The drawing of a workflow: its steps as boxes from left to right, large groups as one box each."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Literal

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from redis_kit.core.panels import Box, Graph
from redis_kit.queues.features.workflows.calls import Node
from redis_kit.queues.features.workflows.workflow import StepInfo

ReadNode = tuple[Node, StepInfo | None]
MOST_MEMBERS = 8  # of a group that is drawn
MOST_BOXES = 60
STATES = {
    "waiting": gettext_lazy("waiting"),
    "due": gettext_lazy("in its queue"),
    "running": gettext_lazy("running"),
    "successful": gettext_lazy("successful"),
    "failed": gettext_lazy("failed"),
    "cancelled": gettext_lazy("cancelled"),
}


class _Drawing:
    """The boxes of a workflow by the number of their first node, and what follows each."""

    def __init__(self, nodes: Sequence[ReadNode]) -> None:
        self._nodes = {node.number: node for node, _ in nodes}
        self._members: defaultdict[int, list[Node]] = defaultdict(list)
        self._boxes: dict[int, int | None] = {}  # by node; None for a group whose members have boxes of their own
        self.steps: defaultdict[int, list[StepInfo]] = defaultdict(list)
        for node, step in nodes:  # a group comes before its members
            is_box = step is not None or (node.number > 0 and len(node.members) > MOST_MEMBERS)
            outer = self._boxes.get(node.group)
            self._boxes[node.number] = box = node.number if outer is None and is_box else outer
            if step and box is not None:
                self.steps[box].append(step)
            if node.number:
                self._members[node.group].append(node)
        self.after: dict[int, set[int]] = {number: set() for number in self.steps}
        for node in self._nodes.values():
            following = [*node.dependents, *([] if node.callback is None else [node.callback])]
            for end in (box for number in following for box in self._first(number)):
                for begin in self._last(node):
                    if begin != end and begin in self.after and end in self.after:
                        self.after[begin].add(end)

    def _first(self, number: int) -> Iterable[int]:
        if number not in self._nodes:
            return ()
        if (box := self._boxes[number]) is not None:
            return (box,)
        return [box for member in self._nodes[number].members for box in self._first(member)]

    def _last(self, node: Node) -> Iterable[int]:
        if (box := self._boxes[node.number]) is not None:
            return (box,)
        ends = [member for member in self._members[node.number] if not member.dependents and member.callback is None]
        return [box for member in ends for box in self._last(member)]


def state_of(step: StepInfo, *, ended: bool) -> Any:
    """Return the state of a step as text, given whether its workflow has ended."""
    return _("will not run") if step.state == "waiting" and ended else STATES.get(step.state, step.state)


def drawing(nodes: Sequence[ReadNode], *, ended: bool = False) -> Graph:
    """Return the drawing of a workflow, without boxes if there would be too many; see state_of()."""
    drawing = _Drawing(nodes)
    total = Counter(str(state_of(step, ended=ended)) for _, step in nodes if step)
    summary = ", ".join(f"{text}: {count}" for text, count in sorted(total.items()))
    if len(drawing.after) > MOST_BOXES:
        return Graph(_("Graph"), [], [], _("Too large to be drawn. %(summary)s") % {"summary": summary})

    @cache
    def column_of(number: int) -> int:  # to the right of all boxes that it follows
        return max((column_of(other) + 1 for other, ends in drawing.after.items() if number in ends), default=0)

    rows = Counter[int]()
    boxes: list[Box] = []
    for number, steps in drawing.steps.items():
        column = column_of(number)
        boxes.append(_box(steps, column, rows[column], ended=ended))
        rows[column] += 1
    places = {number: place for place, number in enumerate(drawing.steps)}
    arrows = [(places[begin], places[end]) for begin, ends in drawing.after.items() for end in sorted(ends)]
    return Graph(_("Graph"), boxes, arrows, summary)


def _box(steps: Sequence[StepInfo], column: int, row: int, *, ended: bool) -> Box:
    words: Counter[str] = Counter(step.state for step in steps)
    failed, count = words["failed"] + words["cancelled"], len(steps)
    if count == 1:
        name, note = steps[0].task.rpartition(".")[2], state_of(steps[0], ended=ended)
        return Box(name, note, column, row, _tone(words, failed))
    name = ngettext("%(count)d step", "%(count)d steps", count) % {"count": count}
    text = _("%(done)d done, %(failed)d failed") if failed else _("%(done)d done")
    return Box(name, text % {"done": words["successful"], "failed": failed}, column, row, _tone(words, failed))


def _tone(words: Counter[str], failed: int) -> Literal["", "active", "good", "bad"]:
    if failed:
        return "bad"
    if words["due"] or words["running"]:
        return "active"
    return "good" if words["successful"] == words.total() else ""
