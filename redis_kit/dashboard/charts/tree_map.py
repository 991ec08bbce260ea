"""Tree maps: areas as large as their values.

The layout is squarified: Bruls, Huizing and van Wijk, "Squarified Treemaps" (2000).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import ClassVar, NamedTuple

from django.utils.translation import gettext as _

from redis_kit.core.panels import Area, TreeMap
from redis_kit.dashboard.cells import Cell, Data, cell, shade, text_width
from redis_kit.dashboard.paths import highest, level

WIDTH, HEIGHT = 340, 200  # pixels, for a narrow screen too
MAX_AREAS = 40
MARGIN, LETTER, LINE = 8, 6.8, 18  # pixels: beside a text, of a letter and of a line


class Frame(NamedTuple):
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float


class DrawnArea(NamedTuple):
    """An area: its place, its shade, its name and value, and the lines for which it has room."""

    x: str
    y: str
    width: str
    height: str
    shade: int
    name: Cell
    value: Cell
    lines: Sequence[str]


@dataclass(frozen=True)
class TreeMapView:
    """A tree map, and its data."""

    template: ClassVar[str] = "redis_kit/dashboard/_tree_map.html"
    half: ClassVar[bool] = True
    title: Cell
    areas: Sequence[DrawnArea]
    rows: Sequence[tuple[Cell, Sequence[Cell]]]
    width: int = WIDTH
    height: int = HEIGHT

    @property
    def flat(self) -> bool:
        """Return whether no value is above 0."""
        return not self.areas

    @property
    def data(self) -> Data:
        """Return the table below it."""
        return Data([cell(_("Name")), cell(_("Value"))], self.rows)


def draw_tree_map(chart: TreeMap) -> TreeMapView:
    """Return the drawing of a tree map. Areas of 0 are in the table only."""
    areas = sorted(list(chart.areas)[:MAX_AREAS], key=lambda area: -(level(area.value) or 0))
    sizes = [size for area in areas if (size := level(area.value))]
    most = highest(sizes)
    frames = _frames(sizes, Frame(0, 0, WIDTH, HEIGHT))
    drawn = [_area(area, frame, most) for area, frame in zip(areas, frames, strict=False)]
    rows = [(cell(area.name), [cell(area.shown)]) for area in areas]
    return TreeMapView(cell(chart.title), drawn, rows)


def _area(area: Area, frame: Frame, most: float) -> DrawnArea:
    name, value = cell(area.name), cell(area.shown)
    room = (frame.width - MARGIN) / LETTER
    lines = [text for text in (name.text, value.text) if text_width(text) <= room][: int(frame.height // LINE)]
    x, y, width, height = (f"{number:.1f}" for number in frame)
    shown = lines if name.text in lines else []
    return DrawnArea(x, y, width, height, shade(area.value, most), name, value, shown)


def _frames(sizes: Sequence[float], frame: Frame) -> Iterator[Frame]:
    """Yield a rectangle in the frame for each size, the largest first, each as close to a square as a row allows."""
    left = list(sizes)
    while left:
        scale = frame.width * frame.height / sum(left)
        side = min(frame.width, frame.height)
        count = min(range(1, len(left) + 1), key=lambda count: _worst(left[:count], scale, side))
        row, left = left[:count], left[count:]
        thickness = scale * sum(row) / side if side else 0.0
        yield from _row(row, frame, thickness)
        x, y, width, height = frame
        if width >= height:
            frame = Frame(x + thickness, y, max(width - thickness, 0), height)
        else:
            frame = Frame(x, y + thickness, width, max(height - thickness, 0))


def _worst(row: Sequence[float], scale: float, side: float) -> float:
    """Return how many times longer than wide, or wider than long, one of the areas in a row is at most."""
    thickness = scale * sum(row) / side if side else 0.0
    ratios = [scale * size / thickness**2 if thickness else 1.0 for size in row]
    return max(max(ratio, 1 / ratio if ratio else 0) for ratio in ratios)


def _row(row: Sequence[float], frame: Frame, thickness: float) -> Iterator[Frame]:
    x, y, width, height = frame
    side = min(width, height)
    lengths = [side * size / sum(row) for size in row]
    for begin, length in zip(accumulate(lengths, initial=0.0), lengths, strict=False):
        if width >= height:
            yield Frame(x, y + begin, thickness, length)
        else:
            yield Frame(x + begin, y, length, thickness)
