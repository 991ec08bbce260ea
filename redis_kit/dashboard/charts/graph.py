"""Graphs of boxes and arrows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from redis_kit.core.panels import Graph
from redis_kit.dashboard.cells import MAX_TOOLTIP, Cell, cell

MAX_NAME = 20  # characters of a name in a box
MAX_BOXES = 60
BOX, BETWEEN = (160, 44), (36, 12)  # pixels: a box of a graph, and the space between two


class DrawnBox(NamedTuple):
    """A box of a graph, at its place in the drawing."""

    x: int
    y: int
    name: Cell
    note: Cell
    tone: str


@dataclass(frozen=True)
class GraphView:
    """A graph: boxes, and the paths of its arrows."""

    template: ClassVar[str] = "redis_kit/dashboard/_graph.html"
    title: Cell
    summary: Cell
    boxes: Sequence[DrawnBox]
    arrows: Sequence[str]
    width: int
    height: int
    box_width: int = BOX[0]
    box_height: int = BOX[1]


def draw_graph(graph: Graph) -> GraphView:
    """Return the drawing of a graph."""
    shown = list(graph.boxes)[:MAX_BOXES]
    pitch = BOX[0] + BETWEEN[0], BOX[1] + BETWEEN[1]
    boxes = [
        DrawnBox(1 + box.column * pitch[0], 1 + box.row * pitch[1], cell(box.name, MAX_NAME), cell(box.note), box.tone)
        for box in shown
    ]
    arrows = [
        _arrow(boxes[begin], boxes[end]) for begin, end in graph.arrows if max(begin, end) < len(boxes) and begin != end
    ]
    width = max((box.x for box in boxes), default=0) + BOX[0] + 1
    height = max((box.y for box in boxes), default=0) + BOX[1] + 1
    return GraphView(cell(graph.title), cell(graph.summary, MAX_TOOLTIP), boxes, arrows, width, height)


def _arrow(begin: DrawnBox, end: DrawnBox) -> str:
    x, y = begin.x + BOX[0], begin.y + BOX[1] // 2
    to_x, to_y = end.x, end.y + BOX[1] // 2
    middle = to_x - BETWEEN[0] // 2
    return f"M{x} {y}H{middle}V{to_y}H{to_x - 1}"
