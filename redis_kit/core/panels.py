"""Panels: the pages of a component on the dashboard, as data. The dashboard draws them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from math import ceil
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar

from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from redis_kit.core.client.addresses import aliases
from redis_kit.core.errors import InvalidValue, RedisUnavailable
from redis_kit.core.flow import Flow
from redis_kit.core.text import seconds_of

Text = str | Promise
MOST_ROWS = 100
AnyCallable = TypeVar("AnyCallable", bound=Callable[..., Any])
NAME = _("Name")
SHOWN = 3  # figures of a tile, and alerts of a kind
DAY = 24 * 60  # minutes


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

    @classmethod
    def of(
        cls, title: Text, items: Iterable[Any], columns: Sequence[tuple[Text, Callable[[Any], Any]]], **more: Any
    ) -> "Table":
        """Return the table of some items. A column is its name and the function of an item that returns its cell."""
        cells = [cell for _name, cell in columns]
        return cls(
            title, [name for name, _cell in columns], [tuple(cell(item) for cell in cells) for item in items], **more
        )


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
    month. A narrow screen shows the last columns first if there are more than 31. At most 800
    squares are drawn.
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
    """Links to other pages of a list: ``number`` of ``count``. The panel finds the number in ``self.viewer.page``.

    If the viewer asks for a page after the last one, the dashboard shows the last one.
    """

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
        """Yield the links of a list of ``total`` rows, at most ``rows`` on each page, if it has more than one page.

        So does a page after the only one, from which the dashboard goes back to that.
        """
        count = max(1, ceil(total / rows))
        if count > 1 or number > 1:
            yield cls(slug, min(number, count), count, asked)


@dataclass(frozen=True)
class NextPage:
    """A link to the next page of a list that is read with a cursor, with the ``cursor`` in ``asked``.

    If that is "", this is the last page. ``note`` says where this page is, such as how many rows were looked at.
    """

    slug: str
    asked: Mapping[str, str]
    note: Text = ""


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
TRENDS = (Bars, StackedBars, LineChart)  # charts whose first line a tile can show
Content = Figure | Table | Chart | Listing | Pages | NextPage | Ranges | Downloads


class Effect(NamedTuple):
    """What an action will do, and the value that its method gets after the confirmation in place of the button's.

    That value names what the text is about, such as the ids of jobs, so that nothing else is changed.
    """

    text: Text
    value: str


@dataclass(frozen=True, kw_only=True)
class Action:
    """Mark a panel's method as a button: POST only, permission checked (``redis_kit.release_locks``), logged.

    The method takes the button's value as text and returns the sentence to show, or a Link with that text. The value
    comes from the row of a table that names the action, or from a text field labelled ``asks``; with ``asks=None`` from
    a row alone, and with ``asks=""`` there is none, and it is "". ``named`` returns the name that is shown and logged
    for a value. With ``confirm`` the viewer is asked first, and may state a reason for the log; with ``typed`` the
    viewer has to type that name, too. ``effect`` returns sentences about what will happen for a value: how many, whose,
    what runs; or an Effect. It may ask a server, and a RedisKitError of it ends the action. ``wants`` labels a further
    field on that page, whose text is the method's second argument. A button that asks first is red, as one that deletes
    something, unless it is ``harmless``.
    """

    do_not_call_in_templates: ClassVar[bool] = True  # else templates of Django would call it

    label: Text = field(kw_only=False)
    permission: str
    confirm: bool = False
    asks: Text | None = NAME
    wants: Text = ""
    named: Callable[[str], str] = str
    typed: bool = False
    effect: Callable[[str], Text | Effect] | None = None
    harmless: bool = False

    def __call__(self, method: AnyCallable) -> AnyCallable:
        """Mark a method, as a decorator does."""
        method.panel_action = self  # type: ignore[attr-defined]
        return method

    @property
    def has_value(self) -> bool:
        """Return whether it is run for a value."""
        return self.asks is None or bool(self.asks)

    @property
    def grave(self) -> bool:
        """Return whether its button looks like one that deletes something."""
        return not self.harmless and (self.confirm or (self.typed and not self.wants))

    @property
    def confirms(self) -> bool:
        """Return whether a confirmation page follows."""
        return self.confirm or self.typed or bool(self.wants)


action = Action


def target_action(
    parse: Callable[[str], Any], run: Callable[..., Any], label: Text, *, explained: str = "", **options: Any
) -> Callable[..., Any]:
    """Return a panel's method for a button of rows: it runs a method of the target that ``parse`` reads from the value.

    The target has its name as ``shown``. With ``explained``, its ``effect()`` of that text tells what will happen.
    """

    def method(panel: Panel, value: str, *entered: str) -> Any:
        return run(parse(value), *entered)

    def named(value: str) -> str:
        return str(parse(value).shown)

    def effect(value: str) -> Text | Effect:
        told: Text | Effect = parse(value).effect(explained)
        return told

    return action(label, asks=None, named=named, effect=effect if explained else None, **options)(method)


def duration(text: str) -> float:
    """Return the seconds of what a viewer entered, such as 90, 15m or 7 days. Raises InvalidValue for other text."""
    with suppress(ValueError):
        if seconds := seconds_of(text):
            return seconds
    raise InvalidValue(_("Enter a duration in seconds, or with a unit, such as 15m, 2h or 7d."))


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


def first_alerts(alerts: Iterable[Alert]) -> Iterator[Alert]:
    """Yield the first three alerts of a kind, and the number of the others."""
    listed = list(alerts)
    yield from listed[:SHOWN]
    if others := len(listed[SHOWN:]):
        yield Alert(ngettext("%(count)d other", "%(count)d others", others) % {"count": others})


@dataclass(frozen=True)
class Tile:
    """A panel on the overview. The list of what needs attention has the ``alerts``, and the figures with an alarm.

    Two or three figures are enough. A ``wide`` tile is a line of figures above all others, such as the server's.
    ``unavailable`` are the errors of connections that would add to it.
    """

    figures: Sequence[Figure]
    trend: Sparkline | None = None
    alerts: Sequence[Alert] = ()
    wide: bool = False
    unavailable: Sequence[RedisUnavailable] = ()

    @classmethod
    def of(cls, contents: Iterable[Content], trend: Sparkline | None = None) -> "Tile | None":
        """Return a tile of the first three figures, and of the first chart unless a trend is given.

        Further figures with an alarm become alerts. Without figures it has the number of rows of each table. None if
        there is no content.
        """
        pieces = list(contents)
        tables = (Figure(piece.title, len(piece.rows)) for piece in pieces if isinstance(piece, Table))
        figures = [piece for piece in pieces if isinstance(piece, Figure)] or list(tables)
        trend = trend or next((_trend(piece) for piece in pieces if isinstance(piece, TRENDS)), None)
        alerts = [Alert.of(figure) for figure in figures[SHOWN:] if figure.alarm]
        return cls(figures[:SHOWN], trend, alerts) if pieces else None


def _trend(chart: Bars | StackedBars | LineChart) -> Sparkline:
    if isinstance(chart, Bars):
        return Sparkline(chart.title, [value for _label, value in chart.bars])
    return Sparkline(chart.title, (chart.parts if isinstance(chart, StackedBars) else chart.lines)[0][1])


@dataclass(frozen=True)
class Field:
    """A field of a search form: text, or one of the ``choices`` if given; ``any`` labels the choice of none of them.

    Text that is ``optional`` may be left out. ``choices`` may be a function, which may ask a server: it is called where
    the form is drawn, after ``content()``, and a RedisKitError of it makes the field one for text. ``labels`` are shown
    in place of the choices.
    """

    name: str
    label: Text
    choices: Sequence[str] | Callable[[], Sequence[str]] = ()
    any: Text = ""
    optional: bool = False
    labels: Sequence[Text] = ()


@dataclass(frozen=True)
class Search:
    """A form above a panel's content. It changes nothing: the values are in the page's address (GET)."""

    label: Text
    fields: Sequence[Field]


@dataclass(frozen=True)
class Viewer:
    """The viewer of a panel.

    ``may`` tells whether they have a permission, ``asked`` is their search, by field, and ``name`` their user name.
    """

    may: Callable[[str], bool] = lambda permission: False
    asked: Mapping[str, str] = field(default_factory=dict)
    name: str = ""

    @property
    def connection(self) -> str:
        """Return the alias that they ask for, else ``default``. Raises InvalidValue if there is no such connection."""
        asked = self.asked.get("connection", "")
        if asked and asked not in aliases():
            raise InvalidValue(gettext("There is no connection with this name."))
        return asked or ("default" if "default" in aliases() else min(aliases()))

    @property
    def page(self) -> int:
        """Return the number of the page of a list that they ask for: 1 unless it is a number of up to 6 digits."""
        number = self.asked.get("page", "")
        return max(1, int(number)) if number.isdecimal() and len(number) <= 6 else 1


def connection_fields() -> list[Field]:
    """Return the field of a search for a connection, which ``self.viewer.connection`` has then; none for only one."""
    names = sorted(aliases())
    return [Field("connection", _("Connection"), names)] if len(names) > 1 else []


class Panel:
    """One page of the dashboard. It calls its component's public API, never a key, and never scans all keys.

    The dashboard makes one for each request, and sets its ``viewer``.
    """

    slug: ClassVar[str]
    title: ClassVar[Text]
    #: The permission that its viewers need beside that for the dashboard, such as ``redis_kit.view_server``.
    permission: ClassVar[str] = ""
    #: Whether the page needs a Redis server: one that does not is never among those that an outage hides.
    needs_server: ClassVar[bool] = True
    viewer = Viewer()

    def heading(self) -> Text:
        """Return the heading of the page for this viewer, by default the title. It must not ask a server."""
        return self.title

    def asked(self, field: str) -> str:
        """Return what the viewer asks for in a field of the search, without blanks around it; "" if nothing."""
        return self.viewer.asked.get(field, "").strip()

    def search(self) -> Search | None:
        """Return the search form for this viewer, or None. The values of its fields are in ``self.viewer.asked``.

        It is called for each button too, so it must not ask a server; choices that need one are a function.
        """
        return None

    def content(self) -> Iterable[Content]:
        """Return the content. The dashboard shows a notice in its place if this raises RedisUnavailable."""
        raise NotImplementedError

    def reads(self) -> Mapping[str, Flow[Any]]:
        """Return what tile() needs: a flow for each connection, by its alias. None by default.

        The overview carries out the flows of all panels side by side, so it costs no more round trips than the longest
        of them: at most two.
        """
        return {}

    def tile(self, replies: Mapping[str, Any]) -> Tile | None:
        """Return the tile on the overview, from the results of reads(), by alias. None if there is nothing to show.

        By default it is made of summary(): three figures, a sparkline of the first chart, and the figures with an
        alarm.
        """
        return Tile.of(self.summary())

    def summary(self) -> Iterable[Content]:
        """Return the content for tile(), by default that of the page. Without any there is no tile."""
        return self.content()

    def file(self, name: str) -> Iterable[Sequence[Any]] | None:
        """Return the rows of a file that ``content()`` offers as one of Downloads; None for other names.

        The first row has the names of the columns. The dashboard writes at most 10,000 rows as CSV, for whoever may
        view the page. Texts that a spreadsheet would take for formulas get an apostrophe.
        """
        return None

    def effect_of(self, action: Action, value: str) -> Text | Effect:
        """Return what an action will do for a value, as this viewer may see it; "" if it does not say."""
        return action.effect(value) if action.effect else ""

    def actions(self) -> dict[str, Action]:
        """Return the methods marked with @action, by name."""
        actions = {name: getattr(getattr(type(self), name), "panel_action", None) for name in dir(type(self))}
        return {name: marked for name, marked in actions.items() if marked}


class Range(NamedTuple):
    """A range of time: its label, its minutes, those of one bar, and whether its numbers are read by hour.

    Bars begin at full multiples of their length on the clock, so the first and the last of a range may be shorter.
    """

    label: Any
    minutes: int
    bar: int
    by_hour: bool = True

    @property
    def hours(self) -> int:
        """Return its length in hours."""
        return self.minutes // 60

    def choice(self, slug: str, asked: Mapping[str, str]) -> Ranges:
        """Return the choice of a range on the page of a panel, with this one chosen. ``asked`` is the search there."""
        return Ranges(slug, [(each.label, each.hours) for each in RANGES.values()], self.hours, asked)

    def bars(self, numbers: Sequence[float], last: int) -> list[Sequence[float]]:
        """Return the numbers of each bar, given those of each minute or hour, and the last minute of the range."""
        first = last + 1 - self.minutes
        places = [(start - first) // self._unit for start in self._starts(last)]
        return [numbers[begin:end] for begin, end in pairwise([*places, len(numbers)])]

    def last_minute(self, start: datetime) -> int:
        """Return the last minute of the range, counted since 1970, given the start of its last minute or hour."""
        return int(start.timestamp()) // 60 + (59 if self.by_hour else 0)

    def labels(self, last: int) -> list[str]:
        """Return the label of each bar, given the last minute of the range, counted since 1970."""
        if self.bar == DAY:
            return [_local_time(start).strftime("%m-%d") for start in self._starts(last)]
        return [label(start, day=self.minutes >= DAY) for start in self._starts(last)]

    @property
    def _unit(self) -> int:
        return 60 if self.by_hour else 1

    def _starts(self, last: int) -> list[int]:
        """Return the first minute of each bar."""
        first, clock = last + 1 - self.minutes, _local_time(last)
        over = (60 * clock.hour + clock.minute) % self.bar + 1  # minutes of the last bar
        over = max(over - over % self._unit, self._unit)  # in zones whose hours begin at half an hour
        return [first, *reversed(range(last + 1 - over, first, -self.bar))]


RANGES = {
    1: Range(_("1 hour"), 60, 1, by_hour=False),
    6: Range(_("6 hours"), 6 * 60, 10, by_hour=False),
    24: Range(_("24 hours"), 24 * 60, 30, by_hour=False),
    72: Range(_("72 hours"), 72 * 60, 60),
    168: Range(_("7 days"), 168 * 60, 120),
    720: Range(_("30 days"), 720 * 60, 8 * 60),
    2160: Range(_("90 days"), 2160 * 60, 24 * 60),
}


def range_of(asked: str) -> Range:
    """Return the range that a viewer asks for, in hours; one hour unless it is offered."""
    return RANGES[int(asked) if asked in map(str, RANGES) else 1]


def label(minute: int, *, day: bool) -> str:
    """Return the label of a minute, counted since 1970: its time, and its day if wanted."""
    return _local_time(minute).strftime("%m-%d %H:%M" if day else "%H:%M")


def _local_time(minute: int) -> datetime:
    return timezone.localtime(datetime.fromtimestamp(minute * 60, UTC))
