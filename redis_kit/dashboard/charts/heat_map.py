"""Heat maps."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from django.utils.translation import gettext as _

from redis_kit.core.panels import HeatMap
from redis_kit.dashboard.cells import SHADES, Cell, Data, cell, highest, level, shade, text_width
from redis_kit.dashboard.charts.axis import HALF, LETTER

MAX_SQUARES = 800
SQUARE, SMALL_SQUARE, MANY_COLUMNS = 22, 14, 31  # pixels from one square to the next; small ones in many columns
LABEL_ROOM, ROW_LABELS, HEAD = 34, 80, 20  # pixels: between labels of columns, beside the squares, above them
GAP = 6  # pixels between the squares and the labels behind them


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
