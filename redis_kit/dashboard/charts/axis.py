"""Charts over labels from left to right."""

from collections.abc import Sequence
from typing import ClassVar

from redis_kit.dashboard.cells import Cell, text_width

MAX_VALUES = 400  # bars, and labels of lines
MAX_LABELS = 7
LETTER, SPACE = 8, 6  # pixels: of a letter, and between two labels
NARROWEST, HALF, WIDEST = 40, 430, 900  # pixels: of a bar, of a chart beside another one, and of any chart
STEP, WIDTH, HEIGHT = 10, 8, 100  # of a bar and its chart, in the units of its viewBox


class Axis:
    """A chart over labels from left to right."""

    css_class: ClassVar[str] = "rk-chart"

    @property
    def labels(self) -> Sequence[Cell]:
        """Return all labels."""
        raise NotImplementedError

    @property
    def pixels(self) -> int:
        """Return its width in pixels if the page is wide enough: each bar has room for its label, if that is shown."""
        longest = max((text_width(label.text) for label in self.labels), default=0)
        each = max(LETTER * longest + SPACE, NARROWEST) if len(self.labels) <= MAX_LABELS else NARROWEST
        return min(max(len(self.labels) * each, 240), WIDEST)

    @property
    def half(self) -> bool:
        """Return whether it may stand beside another one: its labels do not need the whole width of the page."""
        return len(self.labels) > MAX_LABELS or self.pixels <= HALF

    @property
    def drawn_labels(self) -> Sequence[Cell]:
        """Return the labels below it: all of up to 7, otherwise the first, the middle and the last."""
        labels = self.labels
        return labels if len(labels) <= MAX_LABELS else [labels[0], labels[(len(labels) - 1) // 2], labels[-1]]
