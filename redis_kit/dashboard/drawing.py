"""What panels yield, turned into what the templates draw: cells of text, buttons, the geometry of bars."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple
from urllib.parse import quote

from django.utils.translation import gettext as _

from redis_kit.core.errors import RedisKitError
from redis_kit.core.panels import MOST_ROWS, Action, Bars, Content, Field, Figure, Listing, Panel, Table
from redis_kit.dashboard.text import Cell, cell, lines

MOST_BARS = 400
MOST_LABELS = 7
MOST_TEXT = 20_000  # characters of a listing
STEP, WIDTH, HEIGHT = 10, 8, 100  # of a bar and its drawing, in the units of its viewBox


class Offer(NamedTuple):
    """An action that this viewer may use, and where its form goes."""

    name: str
    action: Action
    url: str

    @property
    def asks(self) -> Cell | None:
        """Return the label of its text field."""
        return cell(self.action.asks) if self.action.asks else None

    @property
    def of_rows(self) -> bool:
        """Say whether it is offered in the rows of tables alone."""
        return self.action.asks is None

    @property
    def wants(self) -> Cell | None:
        """Return the label of the field on its page of confirmation."""
        return cell(self.action.wants) if self.action.wants else None

    @property
    def label(self) -> Cell:
        """Return the words on it."""
        return cell(self.action.label)


class Button(NamedTuple):
    """A button of a row. The value is quoted: a form would change line ends and drop what HTML can't hold."""

    offer: Offer
    value: str


@dataclass(frozen=True)
class FigureDrawn:
    """A number with its name."""

    label: Cell
    value: Cell
    hint: Cell
    alarm: bool


class Row(NamedTuple):
    """The head of a row, its other cells with the names of their columns, and its buttons."""

    head: Cell
    cells: Sequence[tuple[Cell, Cell]]
    buttons: Sequence[Button]


@dataclass(frozen=True)
class TableDrawn:
    """A table; ``left_out`` is how many rows it has beyond those drawn."""

    template: ClassVar[str] = "redis_kit/dashboard/_table.html"
    title: Cell
    columns: Sequence[Cell]
    rows: Sequence[Row]
    empty: Cell
    has_buttons: bool
    left_out: int = 0

    def first(self, count: int) -> "TableDrawn":
        """Return the table with its first rows only, and no buttons."""
        rows = [row._replace(buttons=()) for row in self.rows[:count]]
        return replace(self, rows=rows, has_buttons=False, left_out=self.left_out + len(self.rows) - len(rows))


class Bar(NamedTuple):
    """One bar: where it stands in the drawing, and what it says."""

    x: int
    y: str
    height: str
    label: Cell
    value: Cell


@dataclass(frozen=True)
class BarsDrawn:
    """A bar chart drawn from 0, and its data."""

    template: ClassVar[str] = "redis_kit/dashboard/_bars.html"
    title: Cell
    bars: Sequence[Bar]
    most: Cell
    width: int
    height: int = HEIGHT
    bar_width: int = WIDTH

    @property
    def flat(self) -> bool:
        """Say whether no bar is above the ground."""
        return all(bar.height == "0.0" for bar in self.bars)

    @property
    def pixels(self) -> int:
        """Return how wide it is drawn where there is room."""
        return min(max(len(self.bars) * 40, 240), 900)

    @property
    def labels(self) -> list[Cell]:
        """Return what is written below: all labels where there are few, else the first, the middle and the last."""
        labels = [bar.label for bar in self.bars]
        return labels if len(labels) <= MOST_LABELS else [labels[0], labels[(len(labels) - 1) // 2], labels[-1]]

    def first(self, count: int) -> "BarsDrawn":
        """Return the whole chart: it is small as it is."""
        return self


@dataclass(frozen=True)
class FieldDrawn:
    """A field of a search form, with what was searched for before."""

    field: Field
    label: Cell
    any: Cell | None
    value: str

    @property
    def name(self) -> str:
        """Return its name in the address."""
        return self.field.name

    @property
    def optional(self) -> bool:
        """Tell whether it may be left out."""
        return self.field.optional

    @cached_property
    def choices(self) -> Sequence[str]:
        """Return what can be chosen; nothing if that can't be found out now, which the panel's content tells."""
        if not callable(self.field.choices):
            return self.field.choices
        try:
            return self.field.choices()
        except RedisKitError:
            return ()


class SearchDrawn(NamedTuple):
    """A search form."""

    label: Cell
    fields: Sequence[FieldDrawn]

    @property
    def asked(self) -> dict[str, str]:
        """Return what was searched for."""
        return {field.name: field.value for field in self.fields if field.value}


@dataclass(frozen=True)
class ListingDrawn:
    """A long text."""

    template: ClassVar[str] = "redis_kit/dashboard/_listing.html"
    title: Cell
    text: str

    def first(self, count: int) -> "ListingDrawn":
        """Return all of it: it is closed."""
        return self


Drawn = FigureDrawn | TableDrawn | BarsDrawn | ListingDrawn


def draw(content: Content, offers: Mapping[str, Offer]) -> Drawn:
    """Return what the templates need for one piece of a panel's content."""
    if isinstance(content, Figure):
        return FigureDrawn(cell(content.label), cell(content.value), cell(content.hint), content.alarm)
    if isinstance(content, Table):
        return _table(content, [offers[name] for name in content.actions if name in offers])
    if isinstance(content, Bars):
        return _bars(content)
    if isinstance(content, Listing):
        return ListingDrawn(cell(content.title), lines(content.text, MOST_TEXT))
    raise TypeError(f"A panel yields Figure, Table, Bars or Listing, not {type(content).__name__}.")


def search_of(panel: Panel) -> SearchDrawn | None:
    """Return a panel's search form for its viewer, where it has one."""
    if (search := panel.search()) is None:
        return None
    asked = panel.viewer.asked
    fields = [_field(one, asked.get(one.name, "")) for one in search.fields]
    return SearchDrawn(cell(search.label), fields)


def _field(field: Field, asked: str) -> FieldDrawn:
    any = cell(field.any) if field.any else None
    return FieldDrawn(field, cell(field.label), any, asked)


def offers_for(actions: Mapping[str, Action], *, may: Callable[[str], bool], url: Callable[[str], str]) -> list[Offer]:
    """Return the actions whose permission the viewer has."""
    return [Offer(name, action, url(name)) for name, action in actions.items() if may(action.permission)]


def quoted(value: Any) -> str:
    """Return a value as a form can carry it unchanged."""
    return quote(str(value), safe="", errors="replace")


def _table(table: Table, offers: Sequence[Offer]) -> TableDrawn:
    columns = [cell(column) for column in table.columns]
    values = table.values or [str(row[0]) if row else "" for row in table.rows]
    offered = table.offered or [table.actions] * len(table.rows)
    rows = [
        _row(row, columns, value, [offer for offer in offers if offer.name in chosen])
        for row, value, chosen in list(zip(table.rows, values, offered, strict=True))[:MOST_ROWS]
        if row
    ]
    # Numbers stand on the right, and so does what is written above a column of them.
    for place in range(1, len(columns)):
        below = [row.cells[place - 1][1] for row in rows]
        number = any(one.number for one in below) and all(one.number or one.text in ("", "–") for one in below)
        columns[place] = columns[place]._replace(number=number)
    empty = cell(table.empty or _("Nothing here."))
    return TableDrawn(cell(table.title), columns, rows, empty, bool(offers), max(len(table.rows) - MOST_ROWS, 0))


def _row(row: Sequence[Any], columns: Sequence[Cell], value: str, offers: Iterable[Offer]) -> Row:
    given = quoted(value)
    buttons = [Button(offer, given) for offer in offers if value]
    return Row(cell(row[0]), list(zip(columns[1:], map(cell, row[1:]), strict=True)), buttons)


def _bars(chart: Bars) -> BarsDrawn:
    data = list(chart.bars)[-MOST_BARS:]
    most = max((value for _label, value in data if math.isfinite(value)), default=0)
    bars = [_bar(place, label, value, most) for place, (label, value) in enumerate(data)]
    return BarsDrawn(cell(chart.title), bars, cell(max(most, 0)), max(len(bars), 1) * STEP)


def _bar(place: int, label: Any, value: float, most: float) -> Bar:
    drawn = value > 0 and math.isfinite(value)
    # A value that is there must be seen, however small it is beside the others.
    height = max(HEIGHT * value / most, 0.5) if drawn else 0
    x = place * STEP + (STEP - WIDTH) // 2
    return Bar(x, f"{HEIGHT - height:.1f}", f"{height:.1f}", cell(label), cell(value))
