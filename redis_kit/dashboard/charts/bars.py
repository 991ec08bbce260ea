"""Bar charts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from django.utils.translation import gettext as _

from redis_kit.core.panels import Bars, Value
from redis_kit.dashboard.cells import Cell, Data, cell, highest, highest_value, level
from redis_kit.dashboard.charts.axis import HEIGHT, MAX_VALUES, STEP, WIDTH, Axis


class Bar(NamedTuple):
    """One bar: its place in the chart, its label and its value."""

    x: int
    y: str
    height: str
    label: Cell
    value: Cell


@dataclass(frozen=True)
class BarsView(Axis):
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
    def labels(self) -> Sequence[Cell]:
        """Return the labels of all bars."""
        return [bar.label for bar in self.bars]

    @property
    def data(self) -> Data:
        """Return the table below it."""
        return Data([cell(_("Bar")), cell(_("Value"))], [(bar.label, [bar.value]) for bar in self.bars])


def draw_bars(chart: Bars) -> BarsView:
    """Return the drawing of a bar chart."""
    data = list(chart.bars)[-MAX_VALUES:]
    most = highest(level(value) for _label, value in data)
    bars = [_bar(index, label, value, most) for index, (label, value) in enumerate(data)]
    tallest = highest_value(value for _label, value in data)
    return BarsView(cell(chart.title), bars, cell(tallest), max(len(bars), 1) * STEP)


def _bar(index: int, label: Any, value: Value, most: float) -> Bar:
    drawn = level(value)
    # A value above 0 must be visible, however small it is beside the others.
    height = max(HEIGHT * drawn / most, 0.5) if drawn else 0
    x = index * STEP + (STEP - WIDTH) // 2
    return Bar(x, f"{HEIGHT - height:.1f}", f"{height:.1f}", cell(label), cell(value))
