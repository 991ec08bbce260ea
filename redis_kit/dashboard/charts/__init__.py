"""The drawings of charts: one module for each kind has its geometry."""

from collections.abc import Callable
from typing import Any

from redis_kit.core.panels import (
    Bars,
    Graph,
    HeatMap,
    LineChart,
    StackedBars,
)
from redis_kit.dashboard.charts.bars import BarsView, draw_bars
from redis_kit.dashboard.charts.graph import GraphView, draw_graph
from redis_kit.dashboard.charts.heat_map import HeatMapView, draw_heat_map
from redis_kit.dashboard.charts.lines import LinesView, draw_lines
from redis_kit.dashboard.charts.stacked_bars import StackedBarsView, draw_stacked_bars

ChartView = BarsView | StackedBarsView | LinesView | HeatMapView | GraphView
DRAWINGS: dict[type, Callable[[Any], ChartView]] = {
    Bars: draw_bars,
    StackedBars: draw_stacked_bars,
    LineChart: draw_lines,
    HeatMap: draw_heat_map,
    Graph: draw_graph,
}
