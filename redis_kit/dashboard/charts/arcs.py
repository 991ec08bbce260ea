"""The outlines of sectors."""

from math import cos, pi, sin

WHOLE = 0.9999  # of a turn: an arc that ends where it begins would not be drawn


def sector(center: tuple[float, float], radii: tuple[float, float], begin: float, end: float) -> str:
    """Return the path between two radii and two shares of a turn, clockwise from the top."""
    if end - begin > WHOLE:
        middle = (begin + end) / 2
        return sector(center, radii, begin, middle) + sector(center, radii, middle, end)
    (outer, inner), large = radii, int(end - begin > 0.5)
    first, last = _point(center, outer, begin), _point(center, outer, end)
    last_inside, first_inside = _point(center, inner, end), _point(center, inner, begin)
    return f"M{first}A{outer} {outer} 0 {large} 1 {last}L{last_inside}A{inner} {inner} 0 {large} 0 {first_inside}Z"


def _point(center: tuple[float, float], radius: float, share: float) -> str:
    angle = 2 * pi * share
    return f"{center[0] + radius * sin(angle):.2f} {center[1] - radius * cos(angle):.2f}"
