"""The paths of lines, in the units of a drawing."""

import math
from collections.abc import Iterable, Sequence
from datetime import timedelta

from redis_kit.core.panels.content import Estimate, Value


def level(value: Value | None) -> float | None:
    """Return the number of a value that can be drawn, None for any other."""
    if isinstance(value, timedelta):
        value = value.total_seconds()
    elif isinstance(value, Estimate):
        value = value.seconds
    return value if value is not None and math.isfinite(value) and value >= 0 else None


def highest(levels: Iterable[float | None]) -> float:
    """Return the highest level; 0 if there is none."""
    return max((each for each in levels if each is not None), default=0)


def highest_value(values: Iterable[Value | None]) -> Value:
    """Return the value with the highest level; 0 if none can be drawn."""
    return max((value for value in values if value is not None), key=lambda value: level(value) or 0, default=0)


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


def dots_path(values: Sequence[float | None], most: float, height: int, step: int) -> str:
    """Return the path of the dots of a line: its values between two gaps, which would be too small to see."""
    around = zip([None, *values[:-1]], values, [*values[1:], None], strict=False)
    alone = [value if before is after is None else None for before, value, after in around]
    return line_path(alone, most, height, step)
