"""Line charts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from django.utils.translation import gettext as _

from redis_kit.core.panels import LineChart
from redis_kit.dashboard.cells import Cell, Data, cell, dots_path, highest, highest_value, level, line_path
from redis_kit.dashboard.charts.axis import HEIGHT, MAX_VALUES, STEP, Axis


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
    """A line chart drawn from 0, and its data."""

    template: ClassVar[str] = "redis_kit/dashboard/_lines.html"
    css_class: ClassVar[str] = "rk-chart rk-line-chart"
    title: Cell
    lines: Sequence[Line]
    points: Sequence[Point]
    highest: Cell
    flat: bool
    width: int
    height: int = HEIGHT
    column_width: int = STEP

    @property
    def labels(self) -> Sequence[Cell]:
        """Return the labels of all points."""
        return [point.label for point in self.points]

    @property
    def data(self) -> Data:
        """Return the table below it."""
        columns = [cell(_("Label")), *(line.name for line in self.lines)]
        return Data(columns, [(point.label, point.values) for point in self.points])


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
    return LinesView(cell(chart.title), lines, points, cell(tallest), not most, width)
