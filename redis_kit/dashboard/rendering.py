"""Views of what panels yield, for the templates: cells of text, rows with buttons, charts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, get_args

from django.utils.translation import gettext as _

from redis_kit.core.panels import (
    MOST_ROWS,
    Content,
    Downloads,
    Figure,
    Listing,
    NextPage,
    Pages,
    Ranges,
    Table,
    Text,
)
from redis_kit.dashboard.cells import MAX_TOOLTIP, Cell, address, cell, lines
from redis_kit.dashboard.charts import DRAWINGS, ChartView
from redis_kit.dashboard.forms import ActionButton, quoted

MAX_TEXT = 20_000  # characters of a listing


@dataclass(frozen=True)
class FigureView:
    """A number with its name."""

    label: Cell
    value: Cell
    hint: Cell
    alarm: bool


class Row(NamedTuple):
    """The first cell of a row, its other cells with the names of their columns, its buttons, and their value, quoted.

    A form would change the line ends of a value and drop what HTML can't hold.
    """

    head: Cell
    cells: list[tuple[Cell, Cell]]
    buttons: Sequence[ActionButton]
    value: str


@dataclass(frozen=True)
class TableView:
    """A table; ``left_out`` is the number of further rows, ``selects`` are the buttons for selected rows."""

    template: ClassVar[str] = "redis_kit/dashboard/_table.html"
    title: Cell
    columns: Sequence[Cell]
    rows: Sequence[Row]
    empty: Cell
    has_buttons: bool
    left_out: int = 0
    selects: Sequence[ActionButton] = ()

    @property
    def half(self) -> bool:
        """Return whether it may stand beside another one, having two columns."""
        return len(self.columns) == 2 and not self.has_buttons


@dataclass(frozen=True)
class ListingView:
    """A long text."""

    template: ClassVar[str] = "redis_kit/dashboard/_listing.html"
    title: Cell
    text: str
    open: bool


@dataclass(frozen=True)
class PagesView:
    """Where a page is, and links to the previous and the next one, relative to the overview; "" if there is none."""

    template: ClassVar[str] = "redis_kit/dashboard/_pages.html"
    place: Cell
    previous: str
    next: str


class ItemLink(NamedTuple):
    """A link to a file, or to the page with another range of time: whether that is the present one."""

    label: Cell
    address: str
    chosen: bool = False


class LinksView(NamedTuple):
    """Links to files, or a choice of ranges of time."""

    template: str
    links: Sequence[ItemLink]


ItemView = TableView | ChartView | ListingView | PagesView | LinksView
View = FigureView | ItemView


def render(content: Content, buttons: Mapping[str, ActionButton]) -> View:
    """Return the view of one piece of a panel's content."""
    if isinstance(content, Figure):
        return figure_view(content)
    if isinstance(content, Table):
        allowed, selects = (
            [buttons[name] for name in names if name in buttons] for names in (content.actions, content.selects)
        )
        return _table(content, allowed, selects)
    if isinstance(content, Listing):
        return ListingView(cell(content.title), lines(content.text, MAX_TEXT), content.open)
    if isinstance(content, Pages):
        return _pages(content)
    if isinstance(content, NextPage):
        if content.asked.get("cursor"):
            return PagesView(cell(content.note), "", address(content.slug, content.asked))
        return PagesView(cell(f"{content.note} {_('This is the end.')}"), "", "")
    if isinstance(content, Ranges):
        return _ranges(content)
    if isinstance(content, Downloads):
        files = [
            ItemLink(cell(label), address(content.slug, content.asked, f"{name}.csv")) for label, name in content.files
        ]
        return LinksView("redis_kit/dashboard/_downloads.html", files)
    if draw := DRAWINGS.get(type(content)):
        return draw(content)
    kinds = ", ".join(kind.__name__ for kind in get_args(Content))
    raise TypeError(f"A panel yields one of {kinds}, not {type(content).__name__}.")


def figure_view(figure: Figure) -> FigureView:
    """Return the view of a figure."""
    return FigureView(cell(figure.label), cell(figure.value), cell(figure.hint), figure.alarm)


def _table(table: Table, buttons: Sequence[ActionButton], selects: Sequence[ActionButton]) -> TableView:
    columns = [cell(column) for column in table.columns]
    values = table.values or [str(row[0]) if row else "" for row in table.rows]
    offered = table.offered or [table.actions] * len(table.rows)
    rows = [
        Row(
            cell(row[0]),
            list(zip(columns[1:], map(cell, row[1:]), strict=True)),
            [button for button in buttons if value and button.name in chosen],
            quoted(value),
        )
        for row, value, chosen in list(zip(table.rows, values, offered, strict=True))[:MOST_ROWS]
        if row
    ]
    # Numbers are aligned to the right, and so is the name of their column.
    for index in range(1, len(columns)):
        below = [row.cells[index - 1][1] for row in rows]
        number = any(shown.number for shown in below) and all(
            shown.number or shown.text in ("", "–") for shown in below
        )
        if number:
            columns[index] = columns[index]._replace(number=True)
            for row in rows:
                name, shown = row.cells[index - 1]
                row.cells[index - 1] = name, shown._replace(number=True)
    empty = cell(table.empty or _("Nothing here."), MAX_TOOLTIP)  # a text of the panel
    left_out = max(len(table.rows) - MOST_ROWS, 0)
    return TableView(cell(table.title), columns, rows, empty, bool(buttons), left_out, selects)


def _pages(pages: Pages) -> PagesView:
    def to(number: int) -> str:
        there = 1 <= number <= pages.count
        return address(pages.slug, {**pages.asked, "page": str(number)}) if there else ""

    place = _("Page %(number)s of %(count)s") % {"number": pages.number, "count": pages.count}
    return PagesView(cell(place), to(pages.number - 1), to(pages.number + 1))


def _ranges(choice: Ranges) -> LinksView:
    def link(label: Text, hours: int) -> ItemLink:
        there = address(choice.slug, {**choice.asked, "range": str(hours)})
        return ItemLink(cell(label), there, hours == choice.chosen)

    return LinksView("redis_kit/dashboard/_ranges.html", [link(label, hours) for label, hours in choice.ranges])
