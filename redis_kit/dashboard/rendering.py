"""Views of what panels yield, for the templates: cells of text, rows with buttons, the geometry of bars."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

from django.utils.translation import gettext as _

from redis_kit.core.panels import MOST_ROWS, Bars, Content, Figure, Graph, Link, Listing, Pages, Table
from redis_kit.dashboard.cells import MAX_TOOLTIP, Cell, address, cell, lines
from redis_kit.dashboard.forms import ActionButton, RowButton, quoted

MAX_BARS = 400
MAX_LABELS = 7
MAX_NAME = 20  # characters of a name in a box
MAX_TEXT = 20_000  # characters of a listing
STEP, WIDTH, HEIGHT = 10, 8, 100  # of a bar and its chart, in the units of its viewBox
MAX_BOXES = 60
BOX, BETWEEN = (160, 44), (36, 12)  # pixels: a box of a graph, and the space between two


@dataclass(frozen=True)
class FigureView:
    """A number with its name."""

    label: Cell
    value: Cell
    hint: Cell
    alarm: bool


class Row(NamedTuple):
    """The first cell of a row, its other cells with the names of their columns, and its buttons."""

    head: Cell
    cells: Sequence[tuple[Cell, Cell]]
    buttons: Sequence[RowButton]


@dataclass(frozen=True)
class TableView:
    """A table; ``left_out`` is the number of further rows."""

    template: ClassVar[str] = "redis_kit/dashboard/_table.html"
    title: Cell
    columns: Sequence[Cell]
    rows: Sequence[Row]
    empty: Cell
    has_buttons: bool
    left_out: int = 0

    def first(self, count: int) -> "TableView":
        """Return the table with only its first rows, without buttons."""
        rows = [row._replace(buttons=()) for row in self.rows[:count]]
        return replace(self, rows=rows, has_buttons=False, left_out=self.left_out + len(self.rows) - len(rows))


class Bar(NamedTuple):
    """One bar: its place in the chart, its label and its value."""

    x: int
    y: str
    height: str
    label: Cell
    value: Cell


@dataclass(frozen=True)
class BarsView:
    """A bar chart drawn from 0, and its data."""

    template: ClassVar[str] = "redis_kit/dashboard/_bars.html"
    title: Cell
    bars: Sequence[Bar]
    highest: Cell
    width: int
    height: int = HEIGHT
    bar_width: int = WIDTH

    @property
    def flat(self) -> bool:
        """Return whether all bars are 0."""
        return all(bar.height == "0.0" for bar in self.bars)

    @property
    def pixels(self) -> int:
        """Return its width in pixels if the page is wide enough."""
        return min(max(len(self.bars) * 40, 240), 900)

    @property
    def labels(self) -> list[Cell]:
        """Return the labels below it: all of up to 7, otherwise the first, the middle and the last."""
        labels = [bar.label for bar in self.bars]
        return labels if len(labels) <= MAX_LABELS else [labels[0], labels[(len(labels) - 1) // 2], labels[-1]]

    def first(self, count: int) -> "BarsView":
        """Return the whole chart: it is small."""
        return self


@dataclass(frozen=True)
class ListingView:
    """A long text."""

    template: ClassVar[str] = "redis_kit/dashboard/_listing.html"
    title: Cell
    text: str

    def first(self, count: int) -> "ListingView":
        """Return all of it: it is closed until opened."""
        return self


@dataclass(frozen=True)
class PagesView:
    """Links to the previous and the next page, relative to the overview; "" if there is none."""

    template: ClassVar[str] = "redis_kit/dashboard/_pages.html"
    number: int
    count: int
    previous: str
    next: str

    def first(self, count: int) -> "PagesView":
        """Return it unchanged."""
        return self


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

    def first(self, count: int) -> "GraphView":
        """Return it unchanged: a drawing can't be cut."""
        return self


View = FigureView | TableView | BarsView | GraphView | ListingView | PagesView


def render(content: Content, buttons: Mapping[str, ActionButton]) -> View:
    """Return the view of one piece of a panel's content."""
    if isinstance(content, Figure):
        return FigureView(cell(content.label), cell(content.value), cell(content.hint), content.alarm)
    if isinstance(content, Table):
        return _table(content, [buttons[name] for name in content.actions if name in buttons])
    if isinstance(content, Bars):
        return _bars(content)
    if isinstance(content, Graph):
        return _graph(content)
    if isinstance(content, Listing):
        return ListingView(cell(content.title), lines(content.text, MAX_TEXT))
    if isinstance(content, Pages):
        return _pages(content)
    raise TypeError(f"A panel yields Figure, Table, Bars, Graph, Listing or Pages, not {type(content).__name__}.")


def _table(table: Table, buttons: Sequence[ActionButton]) -> TableView:
    columns = [cell(column) for column in table.columns]
    values = table.values or [str(row[0]) if row else "" for row in table.rows]
    offered = table.offered or [table.actions] * len(table.rows)
    rows = [
        _row(row, columns, value, [button for button in buttons if button.name in chosen])
        for row, value, chosen in list(zip(table.rows, values, offered, strict=True))[:MOST_ROWS]
        if row
    ]
    # Numbers are aligned to the right, and so is the name of their column.
    for index in range(1, len(columns)):
        below = [row.cells[index - 1][1] for row in rows]
        number = any(shown.number for shown in below) and all(
            shown.number or shown.text in ("", "–") for shown in below
        )
        columns[index] = columns[index]._replace(number=number)
    empty = cell(table.empty or _("Nothing here."), MAX_TOOLTIP)  # a text of the panel
    return TableView(cell(table.title), columns, rows, empty, bool(buttons), max(len(table.rows) - MOST_ROWS, 0))


def _row(row: Sequence[Any], columns: Sequence[Cell], value: str, buttons: Iterable[ActionButton]) -> Row:
    carried = quoted(value)
    row_buttons = [RowButton(button, carried) for button in buttons if value]
    return Row(cell(row[0]), list(zip(columns[1:], map(cell, row[1:]), strict=True)), row_buttons)


def _pages(pages: Pages) -> PagesView:
    def to(number: int) -> str:
        there = 1 <= number <= pages.count
        return address(Link("", pages.slug, {**pages.asked, "page": str(number)})) if there else ""

    return PagesView(pages.number, pages.count, to(pages.number - 1), to(pages.number + 1))


def _graph(graph: Graph) -> GraphView:
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


def _bars(chart: Bars) -> BarsView:
    data = list(chart.bars)[-MAX_BARS:]
    highest = max((value for _label, value in data if math.isfinite(value)), default=0)
    bars = [_bar(index, label, value, highest) for index, (label, value) in enumerate(data)]
    return BarsView(cell(chart.title), bars, cell(max(highest, 0)), max(len(bars), 1) * STEP)


def _bar(index: int, label: Any, value: float, highest: float) -> Bar:
    drawn = value > 0 and math.isfinite(value)
    # A value above 0 must be visible, however small it is beside the others.
    height = max(HEIGHT * value / highest, 0.5) if drawn else 0
    x = index * STEP + (STEP - WIDTH) // 2
    return Bar(x, f"{HEIGHT - height:.1f}", f"{height:.1f}", cell(label), cell(value))
