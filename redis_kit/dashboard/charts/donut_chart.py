"""Donut charts: the parts of a whole around a circle."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import ClassVar, NamedTuple

from django.utils.translation import gettext as _

from redis_kit.core.panels import DonutChart
from redis_kit.dashboard.cells import SHADES, Cell, Data, cell
from redis_kit.dashboard.charts.arcs import sector
from redis_kit.dashboard.paths import level

SIZE = 120  # pixels
RADII = (58, 36)
MAX_PARTS = SHADES + 1  # as many as there are shades


class Slice(NamedTuple):
    """A part: its path, its class of colour, its name, its value and its percentage. A part of 0 has no path."""

    path: str
    css_class: str
    name: Cell
    value: Cell
    percent: Cell


@dataclass(frozen=True)
class DonutChartView:
    """A donut chart, and its data."""

    template: ClassVar[str] = "redis_kit/dashboard/_donut_chart.html"
    half: ClassVar[bool] = True
    title: Cell
    parts: Sequence[Slice]
    flat: bool
    width: int = SIZE
    height: int = SIZE

    @property
    def data(self) -> Data:
        """Return the table below it."""
        return Data([cell(_("Part")), cell(_("Value")), cell("%")], [(part.name, part[3:]) for part in self.parts])


def draw_donut_chart(chart: DonutChart) -> DonutChartView:
    """Return the drawing of a donut chart."""
    parts = list(chart.parts)[:MAX_PARTS]
    values = [level(value) or 0 for _name, value in parts]
    total = sum(values)
    ends = [end / (total or 1) for end in accumulate(values)]
    drawn = [
        Slice(
            sector((SIZE / 2, SIZE / 2), RADII, begin, end) if end > begin else "",
            "rk-alarm" if name == chart.alarm else f"rk-shade-{SHADES - at}",
            cell(name),
            cell(value),
            cell(round(100 * (end - begin), 1)),
        )
        for at, ((name, value), begin, end) in enumerate(zip(parts, [0.0, *ends], ends, strict=False))
    ]
    return DonutChartView(cell(chart.title), drawn, not total)
