"""The content of panels: figures, tables and charts, and the cells of tables. The dashboard draws them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from math import ceil
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from django.utils.functional import Promise

Text = str | Promise
MOST_ROWS = 100


@dataclass(frozen=True)
class Estimate:
    """A cell: an estimated time in seconds, shown in two digits and rounded up, such as ~1.1 s."""

    seconds: float


Value = float | timedelta | Estimate  # of a chart: times are shown as in tables


@dataclass(frozen=True)
class Meter:
    """A cell: a number out of ``most``, drawn as a bar beside both. It has no bar if ``most`` is 0, for unknown.

    A full bar is red, as a limit that is reached, unless ``wanted`` says that it is the aim. The text beside the bar is
    ``shown`` if that is given, such as a time or a number of bytes.
    """

    number: float
    most: float
    wanted: bool = False
    shown: Any = None


@dataclass(frozen=True)
class Sparkline:
    """A cell: a text, and a small line without axes above or beside it, such as the numbers of the last hour.

    It is drawn from 0; None leaves a gap. The text should say what the line shows.
    """

    value: Any
    values: Sequence[Value | None]


@dataclass(frozen=True)
class Bytes:
    """A cell: a number of bytes, shown in the largest unit that fits, such as 1.4 MiB."""

    number: float


@dataclass(frozen=True)
class Shade:
    """A cell: a value on a background that is stronger the higher ``share`` is, 0 to 1."""

    value: Any
    share: float


@dataclass(frozen=True)
class Lines:
    """A cell of several lines, the first of which names it. Those that are "" or None are left out."""

    lines: Sequence[Any]


@dataclass(frozen=True)
class Words:
    """A cell, or one of its lines: several values beside each other, such as links. None of them has a drawing."""

    values: Sequence[Any]


@dataclass(frozen=True)
class Link:
    """A cell that links to the page of a panel, by its slug, with a search there, by field."""

    value: Any
    slug: str
    asked: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Figure:
    """One number with its name. ``alarm`` marks it as something to look at, ``hint`` may be a Link."""

    label: Text
    value: Any
    hint: Text | Link = ""
    alarm: bool = False


@dataclass(frozen=True)
class Table:
    """Rows under column names; ``empty`` is said when there are none. At most 100 rows.

    ``actions`` names methods of the panel that become buttons of each row, for its first cell as their value, or for
    its place in ``values``: if that is "", the row has no buttons. ``offered``, if given, names for each row
    those of ``actions`` that make sense there. ``selects`` names methods that become buttons below the table, for the
    rows that the viewer selects: their value is that of each row, one a line.
    """

    title: Text
    columns: Sequence[Text]
    rows: Sequence[Sequence[Any]]
    empty: Text = ""
    actions: Sequence[str] = ()
    values: Sequence[str] = ()
    offered: Sequence[Sequence[str]] = ()
    selects: Sequence[str] = ()


@dataclass(frozen=True)
class Bars:
    """A bar chart: (label, value) from left to right, drawn from 0. It is shown with its data as a table."""

    title: Text
    bars: Sequence[tuple[Text, Value]]


@dataclass(frozen=True)
class StackedBars:
    """Bars of up to four parts, the first at the bottom: the name and the values of each part, by label.

    It is drawn from 0 and shown with its data as a table. The second part is red, such as failures above successes.
    """

    title: Text
    labels: Sequence[Text]
    parts: Sequence[tuple[Text, Sequence[float]]]


@dataclass(frozen=True)
class LineChart:
    """Up to five lines over the same labels, drawn from 0: the name and the values of each; None leaves a gap.

    It is shown with its data as a table. The first line is the one that matters; the others are dashed.
    """

    title: Text
    labels: Sequence[Text]
    lines: Sequence[tuple[Text, Sequence[Value | None]]]


class HeatCell(NamedTuple):
    """A square of a heat map: its row and column, counted from 0, its full name and its value."""

    row: int
    column: int
    name: Text
    value: float


@dataclass(frozen=True)
class HeatMap:
    """Squares in rows and columns, darker the higher their value is, shown with their data as a table.

    A column's label is drawn if it differs from that of the column before and has room, so a calendar may repeat the
    month. Of more than 31 columns, a narrow screen shows the last ones first. At most 800 squares.
    """

    title: Text
    rows: Sequence[Text]
    columns: Sequence[Text]
    cells: Sequence[HeatCell]


@dataclass(frozen=True)
class Box:
    """A box of a graph: a name and a note, at a column and a row counted from 0. ``tone`` is how it looks."""

    name: Text
    note: Text
    column: int
    row: int
    tone: Literal["", "active", "good", "bad"] = ""


@dataclass(frozen=True)
class Graph:
    """Boxes and arrows between them, given by their places among the boxes. ``summary`` says in words what it shows.

    It has at most 60 boxes. A table beside it should hold the same, as text.
    """

    title: Text
    boxes: Sequence[Box]
    arrows: Sequence[tuple[int, int]]
    summary: Text = ""


@dataclass(frozen=True)
class Listing:
    """A long text of several lines, such as a traceback, closed unless ``open``. 20,000 characters are shown."""

    title: Text
    text: str
    open: bool = False


@dataclass(frozen=True)
class Pages:
    """Links to other pages of a list: ``number`` of ``count``. The panel finds it in ``self.viewer.asked["page"]``."""

    slug: str
    number: int
    count: int
    asked: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        slug: str,
        number: int,
        total: int,
        asked: Mapping[str, str] = MappingProxyType({}),
        rows: int = MOST_ROWS,
    ) -> "Iterator[Pages]":
        """Yield the links of a list of ``total`` rows, at most ``rows`` on each page, if it has more than one page."""
        if (count := ceil(total / rows)) > 1:
            yield cls(slug, min(number, count), count, asked)


@dataclass(frozen=True)
class Ranges:
    """Links to the same page with other ranges of time, in hours: each its label and its hours, one of them chosen.

    The panel finds the hours in ``self.viewer.asked["range"]``. ``asked`` is the rest of the viewer's search.
    """

    slug: str
    ranges: Sequence[tuple[Text, int]]
    chosen: int
    asked: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Downloads:
    """Links to files of CSV: each its label and its name, of letters, digits and hyphens.

    The panel's ``file()`` returns the rows of a file. ``asked`` is the viewer's search, which is there in it, too.
    """

    slug: str
    files: Sequence[tuple[Text, str]]
    asked: Mapping[str, str] = field(default_factory=dict)


Chart = Bars | StackedBars | LineChart | HeatMap | Graph
Content = Figure | Table | Chart | Listing | Pages | Ranges | Downloads
