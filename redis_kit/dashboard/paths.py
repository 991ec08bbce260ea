"""The paths of lines, in the units of a drawing."""

import math
from collections.abc import Iterable, Sequence


def level(value: float | None) -> float | None:
    """Return a value that can be drawn, None for any other."""
    return value if value is not None and math.isfinite(value) and value >= 0 else None


def highest(values: Iterable[float | None]) -> float:
    """Return the highest value; 0 if there is none."""
    return max((value for value in values if value is not None), default=0)


def line_path(values: Sequence[float | None], most: float, height: int, step: int) -> str:
    """Return the path of a line, which begins again after a gap; a value between two gaps is a dot."""
    path, pen = "", "M"
    for index, value in enumerate(values):
        if value is None:
            pen = "M"
            continue
        path += f"{pen}{index * step} {height - height * value / (most or 1):.1f}" + ("h0" if pen == "M" else "")
        pen = "L"
    return path
