"""Tiles of the overview: a few figures of a panel, a small chart, and alerts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from redis_kit.core.panels.content import Bars, Content, Figure, LineChart, Sparkline, StackedBars, Table, Text

SHOWN = 3  # figures
CHARTS = (Bars, StackedBars, LineChart)


@dataclass(frozen=True)
class Alert:
    """Something that needs attention, with the panel's page as its link: what it is, its value, and what to do.

    ``asked`` is a search on that page, by field.
    """

    text: Text
    value: Any = ""
    hint: Text = ""
    asked: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, figure: Figure) -> "Alert":
        """Return the alert of a figure that needs attention."""
        return cls(figure.label, figure.value, "" if hasattr(figure.hint, "slug") else figure.hint)


@dataclass(frozen=True)
class Tile:
    """A panel on the overview. The list of what needs attention has the ``alerts``, and the figures with an alarm.

    Two or three figures are enough. A ``wide`` tile is a line of figures above all others, such as the server's.
    """

    figures: Sequence[Figure]
    trend: Sparkline | None = None
    alerts: Sequence[Alert] = ()
    wide: bool = False

    @classmethod
    def of(cls, contents: Iterable[Content], trend: Sparkline | None = None) -> "Tile | None":
        """Return a tile of the first three figures, and of the first chart unless a trend is given.

        Further figures with an alarm become alerts. Without figures it has the number of rows of each table. None if
        there is no content.
        """
        pieces = list(contents)
        tables = (Figure(piece.title, len(piece.rows)) for piece in pieces if isinstance(piece, Table))
        figures = [piece for piece in pieces if isinstance(piece, Figure)] or list(tables)
        trend = trend or next((_trend(piece) for piece in pieces if isinstance(piece, CHARTS)), None)
        alerts = [Alert.of(figure) for figure in figures[SHOWN:] if figure.alarm]
        return cls(figures[:SHOWN], trend, alerts) if pieces else None


def _trend(chart: Bars | StackedBars | LineChart) -> Sparkline:
    if isinstance(chart, Bars):
        return Sparkline(chart.title, [value for _label, value in chart.bars])
    return Sparkline(chart.title, (chart.parts if isinstance(chart, StackedBars) else chart.lines)[0][1])
