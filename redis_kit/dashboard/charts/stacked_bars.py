"""Charts of bars that stand on each other."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import ClassVar, NamedTuple

from django.utils.translation import gettext as _

from redis_kit.core.panels import StackedBars
from redis_kit.dashboard.cells import Cell, Data, cell, highest, level
from redis_kit.dashboard.charts.axis import HEIGHT, MAX_VALUES, STEP, WIDTH, Axis


class Piece(NamedTuple):
    """One part of a bar: the number of the part, counted from 1, its place and its height."""

    number: int
    y: str
    height: str


class Stack(NamedTuple):
    """A bar: its place, its label, the values of all parts, and those that are drawn."""

    x: int
    label: Cell
    values: Sequence[Cell]
    pieces: Sequence[Piece]


@dataclass(frozen=True)
class StackedBarsView(Axis):
    """A chart of bars with parts, drawn from 0, and its data."""

    template: ClassVar[str] = "redis_kit/dashboard/_stacked_bars.html"
    title: Cell
    names: Sequence[Cell]
    stacks: Sequence[Stack]
    highest: Cell
    flat: bool
    width: int
    height: int = HEIGHT
    bar_width: int = WIDTH

    @property
    def labels(self) -> Sequence[Cell]:
        """Return the labels of all bars."""
        return [stack.label for stack in self.stacks]

    @property
    def data(self) -> Data:
        """Return the table below it."""
        return Data([cell(_("Bar")), *self.names], [(stack.label, stack.values) for stack in self.stacks])


def draw_stacked_bars(chart: StackedBars) -> StackedBarsView:
    """Return the drawing of stacked bars."""
    parts = [values[-MAX_VALUES:] for _name, values in chart.parts]
    bars = list(zip(list(chart.labels)[-MAX_VALUES:], *parts, strict=True))
    most = highest(sum(_drawn(values)) for _label, *values in bars)
    stacks = [
        Stack(at * STEP + (STEP - WIDTH) // 2, cell(label), list(map(cell, values)), _pieces(values, most))
        for at, (label, *values) in enumerate(bars)
    ]
    names = [cell(name) for name, _values in chart.parts]
    return StackedBarsView(cell(chart.title), names, stacks, cell(most), not most, max(len(bars), 1) * STEP)


def _drawn(values: Sequence[float]) -> list[float]:
    return [level(value) or 0 for value in values]


def _pieces(values: Sequence[float], most: float) -> list[Piece]:
    drawn = _drawn(values)
    return [
        Piece(number, f"{HEIGHT - HEIGHT * top / most:.1f}", f"{HEIGHT * value / most:.1f}")
        for number, (value, top) in enumerate(zip(drawn, accumulate(drawn), strict=True), 1)
        if value
    ]
