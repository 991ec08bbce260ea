"""Charts over labels from left to right."""

from collections.abc import Sequence
from typing import ClassVar

from redis_kit.dashboard.cells import Cell

MAX_VALUES = 400  # bars, and labels of lines
MAX_LABELS = 7
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
        """Return its width in pixels if the page is wide enough."""
        return min(max(len(self.labels) * 40, 240), 900)

    @property
    def drawn_labels(self) -> Sequence[Cell]:
        """Return the labels below it: all of up to 7, otherwise the first, the middle and the last."""
        labels = self.labels
        return labels if len(labels) <= MAX_LABELS else [labels[0], labels[(len(labels) - 1) // 2], labels[-1]]
