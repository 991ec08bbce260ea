"""Gauges."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import ClassVar

from django.utils.translation import gettext as _

from redis_kit.core.panels import Gauge
from redis_kit.dashboard.cells import Cell, Data, cell
from redis_kit.dashboard.charts.arcs import sector

WIDTH, HEIGHT = 160, 92  # pixels
CENTER, RADII = (80.0, 84.0), (76, 52)
LEFT, RIGHT = -0.25, 0.25  # shares of a turn from the top


@dataclass(frozen=True)
class GaugeView:
    """A gauge, and its data."""

    template: ClassVar[str] = "redis_kit/dashboard/_gauge.html"
    half: ClassVar[bool] = True
    title: Cell
    value: Cell
    percent: str
    track: str
    part: str
    full: bool
    rows: Sequence[tuple[Cell, Sequence[Cell]]]
    width: int = WIDTH
    height: int = HEIGHT

    @property
    def data(self) -> Data:
        """Return the table below it."""
        return Data([cell(_("Part")), cell(_("Value"))], self.rows)


def draw_gauge(gauge: Gauge) -> GaugeView:
    """Return the drawing of a gauge."""
    share = min(max(gauge.share, 0.0), 1.0) if isfinite(gauge.share) else 0.0
    end = LEFT + (RIGHT - LEFT) * share
    track, part = (sector(CENTER, RADII, LEFT, to) for to in (RIGHT, end))
    rows = [(cell(name), [cell(value)]) for name, value in gauge.data]
    full = share >= gauge.alarm
    return GaugeView(cell(gauge.title), cell(gauge.value), f"{100 * share:.0f} %", track, part, full, rows)
