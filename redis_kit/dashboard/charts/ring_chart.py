"""Rings of shares."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import ClassVar, NamedTuple

from django.utils.translation import gettext as _

from redis_kit.core.panels import RingChart
from redis_kit.dashboard.cells import SHADES, Cell, Data, cell
from redis_kit.dashboard.charts.arcs import ring_part
from redis_kit.dashboard.paths import level

SIZE = 120  # pixels
RADII = (58, 36)
MAX_PARTS = SHADES + 1  # as many as there are shades


class RingPart(NamedTuple):
    """A part: its path, its shade, its name, its value and its percentage. A part of 0 has no path."""

    path: str
    shade: int
    name: Cell
    value: Cell
    percent: Cell


@dataclass(frozen=True)
class RingChartView:
    """A ring of shares, and its data."""

    template: ClassVar[str] = "redis_kit/dashboard/_ring_chart.html"
    title: Cell
    parts: Sequence[RingPart]
    flat: bool
    width: int = SIZE
    height: int = SIZE

    @property
    def data(self) -> Data:
        """Return the table below it."""
        return Data([cell(_("Part")), cell(_("Value")), cell("%")], [(part.name, part[3:]) for part in self.parts])


def draw_ring_chart(chart: RingChart) -> RingChartView:
    """Return the drawing of a ring of shares."""
    parts = list(chart.parts)[:MAX_PARTS]
    values = [level(value) or 0 for _name, value in parts]
    total = sum(values)
    ends = [end / (total or 1) for end in accumulate(values)]
    drawn = [
        RingPart(
            ring_part((SIZE / 2, SIZE / 2), RADII, begin, end) if end > begin else "",
            SHADES - at,
            cell(name),
            cell(value),
            cell(round(100 * (end - begin), 1)),
        )
        for at, ((name, value), begin, end) in enumerate(zip(parts, [0.0, *ends], ends, strict=False))
    ]
    return RingChartView(cell(chart.title), drawn, not total)
