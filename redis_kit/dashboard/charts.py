"""Charts of panels, drawn as SVG: the geometry; the templates draw it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, ClassVar, NamedTuple

from django.utils.translation import gettext as _

from redis_kit.core.panels import Bars, Graph, HeatMap, LineChart, StackedBars, Value
from redis_kit.core.text import text_width
from redis_kit.dashboard.cells import (
    MAX_TOOLTIP,
    SHADES,
    Cell,
    Data,
    cell,
    dots_path,
    highest,
    highest_value,
    level,
    line_path,
    shade,
)

MAX_VALUES = 400  # bars, and labels of lines
MAX_LABELS = 7
LETTER, SPACE = 8, 6  # pixels: of a letter, and between two labels
NARROWEST, HALF, WIDEST = 40, 430, 900  # pixels: of a bar, of a chart beside another one, and of any chart
STEP, WIDTH, HEIGHT = 10, 8, 100  # of a bar and its chart, in the units of its viewBox
MAX_SQUARES = 800
SQUARE, SMALL_SQUARE, MANY_COLUMNS = 22, 14, 31  # pixels from one square to the next; small ones in many columns
LABEL_ROOM, ROW_LABELS, HEAD = 34, 80, 20  # pixels: between labels of columns, beside the squares, above them
GAP = 6  # pixels between the squares and the labels behind them
MAX_NAME = 20  # characters of a name in a box
MAX_BOXES = 60
BOX, BETWEEN = (160, 44), (36, 12)  # pixels: a box of a graph, and the space between two


@dataclass(frozen=True)
class Axis:
    """A chart over labels from left to right, drawn from 0, and its data."""

    css_class: ClassVar[str] = "rk-chart"
    title: Cell
    labels: Sequence[Cell]
    data: Data
    highest: Cell
    flat: bool
    width: int

    @property
    def pixels(self) -> int:
        """Return its width in pixels if the page is wide enough: each bar has room for its label, if that is shown."""
        longest = max((text_width(label.text) for label in self.labels), default=0)
        each = max(LETTER * longest + SPACE, NARROWEST) if len(self.labels) <= MAX_LABELS else NARROWEST
        return min(max(len(self.labels) * each, 240), WIDEST)

    @property
    def half(self) -> bool:
        """Return whether it may stand beside another one: its labels do not need the whole width of the page."""
        return len(self.labels) > MAX_LABELS or self.pixels <= HALF

    @property
    def drawn_labels(self) -> Sequence[Cell]:
        """Return the labels below it: all of up to 7, otherwise the first, the middle and the last."""
        labels = self.labels
        return labels if len(labels) <= MAX_LABELS else [labels[0], labels[(len(labels) - 1) // 2], labels[-1]]


class Piece(NamedTuple):
    """One part of a bar: the number of the part, counted from 1, its place and its height."""

    number: int
    y: str
    height: str


class Bar(NamedTuple):
    """A bar: its place, its label, the values of all parts, and those that are drawn."""

    x: int
    label: Cell
    values: Sequence[Cell]
    pieces: Sequence[Piece]


@dataclass(frozen=True)
class BarsView(Axis):
    """A chart of bars. Bars of several parts have a legend with the ``names`` of these."""

    template: ClassVar[str] = "redis_kit/dashboard/_bars.html"
    names: Sequence[Cell]
    bars: Sequence[Bar]
    has_legend: bool
    height: int = HEIGHT
    bar_width: int = WIDTH


def draw_bars(chart: Bars | StackedBars) -> BarsView:
    """Return the drawing of a bar chart, whose bars may have parts."""
    if isinstance(chart, StackedBars):
        parts = [values[-MAX_VALUES:] for _name, values in chart.parts]
        data: list[Any] = list(zip(list(chart.labels)[-MAX_VALUES:], *parts, strict=True))
        names, tallest = [cell(name) for name, _values in chart.parts], None
    else:
        data = list(chart.bars)[-MAX_VALUES:]
        names, tallest = [cell(_("Value"))], highest_value(value for _label, value in data)
    most = highest(sum(_drawn(values)) for _label, *values in data)
    bars = [
        Bar(at * STEP + (STEP - WIDTH) // 2, cell(label), list(map(cell, values)), _pieces(values, most))
        for at, (label, *values) in enumerate(data)
    ]
    labels = [bar.label for bar in bars]
    table = Data([cell(_("Bar")), *names], [(bar.label, bar.values) for bar in bars])
    top = cell(most if tallest is None else tallest)
    width = max(len(bars), 1) * STEP
    return BarsView(cell(chart.title), labels, table, top, not most, width, names, bars, tallest is None)


def _drawn(values: Sequence[Value | None]) -> list[float]:
    return [level(value) or 0 for value in values]


def _pieces(values: Sequence[Value | None], most: float) -> list[Piece]:
    drawn = _drawn(values)
    return [
        # A value above 0 must be visible, however small it is beside the others.
        Piece(number, f"{HEIGHT - max(HEIGHT * top / most, 0.5):.1f}", f"{max(HEIGHT * value / most, 0.5):.1f}")
        for number, (value, top) in enumerate(zip(drawn, accumulate(drawn), strict=True), 1)
        if value
    ]


class Point(NamedTuple):
    """One label of a line chart: the place of the column that shows its values, and the values of all lines."""

    x: int
    label: Cell
    values: Sequence[Cell]


class Line(NamedTuple):
    """One line: its place among them, counted from 1, its name, its path and that of its dots."""

    number: int
    name: Cell
    path: str
    dots: str


@dataclass(frozen=True)
class LinesView(Axis):
    """A line chart."""

    template: ClassVar[str] = "redis_kit/dashboard/_lines.html"
    css_class: ClassVar[str] = "rk-chart rk-line-chart"
    lines: Sequence[Line]
    points: Sequence[Point]
    height: int = HEIGHT
    column_width: int = STEP


def draw_lines(chart: LineChart) -> LinesView:
    """Return the drawing of a line chart."""
    labels = list(chart.labels)[-MAX_VALUES:]
    series = [(cell(name), values[-MAX_VALUES:]) for name, values in chart.lines]
    levels = [list(map(level, values)) for _name, values in series]
    most = highest(each for line in levels for each in line)
    lines = [
        Line(number, name, line_path(line, most, HEIGHT, STEP), dots_path(line, most, HEIGHT, STEP))
        for number, ((name, _values), line) in enumerate(zip(series, levels, strict=True), 1)
    ]
    by_label = zip(labels, *(values for _name, values in series), strict=True)
    points = [
        Point(
            index * STEP - STEP // 2, cell(label), [cell(None if level(value) is None else value) for value in values]
        )
        for index, (label, *values) in enumerate(by_label)
    ]
    tallest = highest_value(value for _name, values in series for value in values)
    width = max(len(labels) - 1, 1) * STEP
    columns = [cell(_("Label")), *(line.name for line in lines)]
    table = Data(columns, [(point.label, point.values) for point in points])
    return LinesView(
        cell(chart.title), [point.label for point in points], table, cell(tallest), not most, width, lines, points
    )


class Square(NamedTuple):
    """One square: its place in the drawing, its shade from 0 to 4, its name and its value."""

    x: int
    y: int
    shade: int
    name: Cell
    value: Cell


class Label(NamedTuple):
    """A text at a place in a drawing."""

    x: int
    y: int
    text: Cell


@dataclass(frozen=True)
class HeatMapView:
    """A heat map, and its data."""

    template: ClassVar[str] = "redis_kit/dashboard/_heat_map.html"
    title: Cell
    squares: Sequence[Square]
    rows: Sequence[Label]
    columns: Sequence[Label]
    highest: Cell
    width: int
    height: int
    size: int
    is_long: bool
    shades: Sequence[int] = range(SHADES + 1)

    @property
    def half(self) -> bool:
        """Return whether it may stand beside another chart."""
        return self.width <= HALF

    @property
    def flat(self) -> bool:
        """Return whether all squares are 0."""
        return not any(square.shade for square in self.squares)

    @property
    def data(self) -> Data:
        """Return the table below it."""
        return Data([cell(_("Square")), cell(_("Value"))], [(square.name, [square.value]) for square in self.squares])


def draw_heat_map(chart: HeatMap) -> HeatMapView:
    """Return the drawing of a heat map."""
    is_long = len(chart.columns) > MANY_COLUMNS
    pitch = SMALL_SQUARE if is_long else SQUARE
    most = highest(level(square.value) for square in chart.cells)
    squares = [
        Square(
            ROW_LABELS + square.column * pitch,
            HEAD + square.row * pitch,
            shade(square.value, most),
            cell(square.name),
            cell(square.value),
        )
        for square in chart.cells[:MAX_SQUARES]
    ]
    end, height = ROW_LABELS + len(chart.columns) * pitch, HEAD + len(chart.rows) * pitch
    # A long one shows its end first, and needs the labels of its rows there, too.
    places = [0, end + GAP] if is_long else [0]
    lines = [HEAD + row * pitch + pitch // 2 + 3 for row in range(len(chart.rows))]
    rows = [Label(x, y, cell(label)) for x in places for y, label in zip(lines, chart.rows, strict=True)]
    width = max([end + LABEL_ROOM, *(x + LETTER * text_width(text.text) for x, _y, text in rows)]) if is_long else end
    columns = _column_labels(chart.columns, pitch)
    return HeatMapView(cell(chart.title), squares, rows, columns, cell(most), width, height, pitch - 2, is_long)


def _column_labels(labels: Sequence[Any], pitch: int) -> list[Label]:
    drawn: list[Label] = []
    for index, text in enumerate(labels):
        x = ROW_LABELS + index * pitch
        if (not index or text != labels[index - 1]) and (not drawn or x - drawn[-1].x >= LABEL_ROOM):
            drawn.append(Label(x, HEAD - 7, cell(text)))
    return drawn


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


ChartView = BarsView | LinesView | HeatMapView | GraphView
DRAWINGS: dict[type, Callable[[Any], ChartView]] = {
    Bars: draw_bars,
    StackedBars: draw_bars,
    LineChart: draw_lines,
    HeatMap: draw_heat_map,
    Graph: draw_graph,
}
