"""Views of panels for the templates: tables, charts as SVG, the search and the buttons that a viewer may use."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, ClassVar, NamedTuple, get_args
from urllib.parse import quote

from django.utils.translation import gettext as _

from redis_kit.core.errors import RedisKitError
from redis_kit.core.panels import (
    MOST_ROWS,
    Action,
    Bars,
    Content,
    Downloads,
    Field,
    Figure,
    Graph,
    HeatMap,
    LineChart,
    Listing,
    NextPage,
    Pages,
    Panel,
    Ranges,
    StackedBars,
    Table,
    Text,
    Value,
)
from redis_kit.core.text import text_width
from redis_kit.dashboard.cells import (
    MAX_TOOLTIP,
    SHADES,
    Cell,
    Data,
    address,
    cell,
    dots_path,
    highest,
    highest_value,
    level,
    line_path,
    lines,
    shade,
)

LONGEST_LABEL = 100  # characters of a choice
MAX_TEXT = 20_000  # characters of a listing
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


class ActionButton(NamedTuple):
    """The button of an action that this viewer may use; ``url`` is the target of its form."""

    name: str
    action: Action
    url: str


@dataclass(frozen=True)
class FieldView:
    """A field of a search form, with the value of the current search."""

    field: Field
    value: str

    @cached_property
    def choices(self) -> Sequence[str]:
        """Return the choices; none if the server is unavailable, which the panel's content reports."""
        if not callable(self.field.choices):
            return self.field.choices
        try:
            return self.field.choices()
        except RedisKitError:
            return ()

    @property
    def options(self) -> list[tuple[str, str]]:
        """Return the choices with their labels, which are cut."""
        labels = (cell(label, LONGEST_LABEL).text for label in self.field.labels or self.choices)
        return list(zip(self.choices, labels, strict=True))


class SearchView(NamedTuple):
    """A search form."""

    label: Text
    fields: Sequence[FieldView]

    @property
    def asked(self) -> dict[str, str]:
        """Return the values of the current search."""
        return {each.field.name: each.value for each in self.fields if each.value}


def search_view(panel: Panel) -> SearchView | None:
    """Return a panel's search form for its viewer, or None."""
    if (search := panel.search()) is None:
        return None
    fields = [FieldView(field, panel.viewer.asked.get(field.name, "")) for field in search.fields]
    return SearchView(search.label, fields)


def quoted(value: Any) -> str:
    """Return a value as a form can carry it unchanged."""
    return quote(str(value), safe="", errors="replace")


@dataclass(frozen=True)
class FigureView:
    """A number with its name."""

    label: Cell
    value: Cell
    hint: Cell
    alarm: bool


class Row(NamedTuple):
    """The first cell of a row, its other cells with the names of their columns, its buttons, and their value, quoted.

    A form would change the line ends of a value and drop what HTML can't hold.
    """

    head: Cell
    cells: list[tuple[Cell, Cell]]
    buttons: Sequence[ActionButton]
    value: str


@dataclass(frozen=True)
class TableView:
    """A table; ``left_out`` is the number of further rows, ``selects`` are the buttons for selected rows."""

    template: ClassVar[str] = "redis_kit/dashboard/_table.html"
    title: Cell
    columns: Sequence[Cell]
    rows: Sequence[Row]
    empty: Cell
    has_buttons: bool
    left_out: int = 0
    selects: Sequence[ActionButton] = ()

    @property
    def half(self) -> bool:
        """Return whether it may stand beside another one, having two columns."""
        return len(self.columns) == 2 and not self.has_buttons


@dataclass(frozen=True)
class ListingView:
    """A long text."""

    template: ClassVar[str] = "redis_kit/dashboard/_listing.html"
    title: Cell
    text: str
    open: bool


@dataclass(frozen=True)
class PagesView:
    """Where a page is, and links to the previous and the next one, relative to the overview; "" if there is none."""

    template: ClassVar[str] = "redis_kit/dashboard/_pages.html"
    place: Cell
    previous: str
    next: str


class ItemLink(NamedTuple):
    """A link to a file, or to the page with another range of time: whether that is the present one."""

    label: Cell
    address: str
    chosen: bool = False


class LinksView(NamedTuple):
    """Links to files, or a choice of ranges of time."""

    template: str
    links: Sequence[ItemLink]


class Piece(NamedTuple):
    """One part of a bar: the number of the part, counted from 1, its place and its height."""

    number: int
    y: str
    height: str


class Mark(NamedTuple):
    """What is drawn at a label of a chart: its place, the values there, and the pieces of a bar."""

    x: int
    label: Cell
    values: Sequence[Cell]
    pieces: Sequence[Piece] = ()


class Line(NamedTuple):
    """The path of a line, and that of its dots."""

    path: str
    dots: str


@dataclass(frozen=True)
class AxisView:
    """A chart of bars or lines over labels from left to right, drawn from 0, and its data.

    ``names`` are those of the lines, or of the parts of bars.
    """

    template: str
    title: Cell
    data: Data
    highest: Cell
    flat: bool
    width: int
    marks: Sequence[Mark]
    names: Sequence[Cell]
    lines: Sequence[Line] = ()
    height: int = HEIGHT
    bar_width: int = WIDTH
    column_width: int = STEP

    @property
    def labels(self) -> Sequence[Cell]:
        """Return the labels of all values."""
        return [mark.label for mark in self.marks]

    @property
    def pixels(self) -> int:
        """Return its width in pixels if the page is wide enough: each bar has room for its label, if that is shown."""
        longest = max((text_width(label.text) for label in self.labels), default=0)
        each = max(LETTER * longest + SPACE, NARROWEST) if len(self.marks) <= MAX_LABELS else NARROWEST
        return min(max(len(self.marks) * each, 240), WIDEST)

    @property
    def half(self) -> bool:
        """Return whether it may stand beside another one: its labels do not need the whole width of the page."""
        return len(self.marks) > MAX_LABELS or self.pixels <= HALF

    @property
    def drawn_labels(self) -> Sequence[Cell]:
        """Return the labels below it: all of up to 7, otherwise the first, the middle and the last."""
        labels = self.labels
        return labels if len(labels) <= MAX_LABELS else [labels[0], labels[(len(labels) - 1) // 2], labels[-1]]


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


ChartView = AxisView | HeatMapView | GraphView
ItemView = TableView | ChartView | ListingView | PagesView | LinksView
View = FigureView | ItemView


def render(content: Content, buttons: Mapping[str, ActionButton]) -> View:
    """Return the view of one piece of a panel's content."""
    if isinstance(content, Figure):
        return figure_view(content)
    if isinstance(content, Table):
        allowed, selects = (
            [buttons[name] for name in names if name in buttons] for names in (content.actions, content.selects)
        )
        return _table(content, allowed, selects)
    if isinstance(content, Listing):
        return ListingView(cell(content.title), lines(content.text, MAX_TEXT), content.open)
    if isinstance(content, Pages):
        return _pages(content)
    if isinstance(content, NextPage):
        if content.asked.get("cursor"):
            return PagesView(cell(content.note), "", address(content.slug, content.asked))
        return PagesView(cell(f"{content.note} {_('This is the end.')}"), "", "")
    if isinstance(content, Ranges):
        return _ranges(content)
    if isinstance(content, Downloads):
        files = [
            ItemLink(cell(label), address(content.slug, content.asked, f"{name}.csv")) for label, name in content.files
        ]
        return LinksView("redis_kit/dashboard/_downloads.html", files)
    if draw := DRAWINGS.get(type(content)):
        return draw(content)
    kinds = ", ".join(kind.__name__ for kind in get_args(Content))
    raise TypeError(f"A panel yields one of {kinds}, not {type(content).__name__}.")


def figure_view(figure: Figure) -> FigureView:
    """Return the view of a figure."""
    return FigureView(cell(figure.label), cell(figure.value), cell(figure.hint), figure.alarm)


def _table(table: Table, buttons: Sequence[ActionButton], selects: Sequence[ActionButton]) -> TableView:
    columns = [cell(column) for column in table.columns]
    values = table.values or [str(row[0]) if row else "" for row in table.rows]
    offered = table.offered or [table.actions] * len(table.rows)
    rows = [
        Row(
            cell(row[0]),
            list(zip(columns[1:], map(cell, row[1:]), strict=True)),
            [button for button in buttons if value and button.name in chosen],
            quoted(value),
        )
        for row, value, chosen in list(zip(table.rows, values, offered, strict=True))[:MOST_ROWS]
        if row
    ]
    # Numbers are aligned to the right, and so is the name of their column.
    for index in range(1, len(columns)):
        below = [row.cells[index - 1][1] for row in rows]
        number = any(shown.number for shown in below) and all(
            shown.number or shown.text in ("", "–") for shown in below
        )
        if number:
            columns[index] = columns[index]._replace(number=True)
            for row in rows:
                name, shown = row.cells[index - 1]
                row.cells[index - 1] = name, shown._replace(number=True)
    empty = cell(table.empty or _("Nothing here."), MAX_TOOLTIP)  # a text of the panel
    left_out = max(len(table.rows) - MOST_ROWS, 0)
    return TableView(cell(table.title), columns, rows, empty, bool(buttons), left_out, selects)


def _pages(pages: Pages) -> PagesView:
    def to(number: int) -> str:
        there = 1 <= number <= pages.count
        return address(pages.slug, {**pages.asked, "page": str(number)}) if there else ""

    place = _("Page %(number)s of %(count)s") % {"number": pages.number, "count": pages.count}
    return PagesView(cell(place), to(pages.number - 1), to(pages.number + 1))


def _ranges(choice: Ranges) -> LinksView:
    def link(label: Text, hours: int) -> ItemLink:
        there = address(choice.slug, {**choice.asked, "range": str(hours)})
        return ItemLink(cell(label), there, hours == choice.chosen)

    return LinksView("redis_kit/dashboard/_ranges.html", [link(label, hours) for label, hours in choice.ranges])


def _axis(
    chart: Bars | StackedBars | LineChart, head: str, names: Sequence[Cell], marks: Sequence[Mark], **drawing: Any
) -> AxisView:
    kind = "_lines" if isinstance(chart, LineChart) else "_bars"
    data = Data(
        [cell(head), *([cell(_("Value"))] if isinstance(chart, Bars) else names)],
        [(mark.label, mark.values) for mark in marks],
    )
    return AxisView(f"redis_kit/dashboard/{kind}.html", cell(chart.title), data, marks=marks, names=names, **drawing)


def _bars(chart: Bars | StackedBars) -> AxisView:
    if isinstance(chart, StackedBars):
        names = [cell(name) for name, _values in chart.parts]
        parts = [values[-MAX_VALUES:] for _name, values in chart.parts]
        data: list[Any] = list(zip(list(chart.labels)[-MAX_VALUES:], *parts, strict=True))
    else:
        names, data = [], list(chart.bars)[-MAX_VALUES:]
    most = highest(sum(_drawn(values)) for _label, *values in data)
    tallest = most if isinstance(chart, StackedBars) else highest_value(value for _label, value in data)
    bars = [
        Mark(at * STEP + (STEP - WIDTH) // 2, cell(label), list(map(cell, values)), _pieces(values, most))
        for at, (label, *values) in enumerate(data)
    ]
    width = max(len(bars), 1) * STEP
    return _axis(chart, _("Bar"), names, bars, highest=cell(tallest), flat=not most, width=width)


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


def _lines(chart: LineChart) -> AxisView:
    labels = list(chart.labels)[-MAX_VALUES:]
    series = [values[-MAX_VALUES:] for _name, values in chart.lines]
    levels = [list(map(level, values)) for values in series]
    most = highest(each for line in levels for each in line)
    marks = [
        Mark(at * STEP - STEP // 2, cell(label), [cell(None if level(value) is None else value) for value in values])
        for at, (label, *values) in enumerate(zip(labels, *series, strict=True))
    ]
    return _axis(
        chart,
        _("Label"),
        [cell(name) for name, _values in chart.lines],
        marks,
        highest=cell(highest_value(value for values in series for value in values)),
        flat=not most,
        width=max(len(labels) - 1, 1) * STEP,
        lines=[Line(line_path(line, most, HEIGHT, STEP), dots_path(line, most, HEIGHT, STEP)) for line in levels],
    )


def _heat_map(chart: HeatMap) -> HeatMapView:
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
    heights = [HEAD + row * pitch + pitch // 2 + 3 for row in range(len(chart.rows))]
    rows = [Label(x, y, cell(label)) for x in places for y, label in zip(heights, chart.rows, strict=True)]
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


DRAWINGS: dict[type, Callable[[Any], ChartView]] = {
    Bars: _bars,
    StackedBars: _bars,
    LineChart: _lines,
    HeatMap: _heat_map,
    Graph: _graph,
}
