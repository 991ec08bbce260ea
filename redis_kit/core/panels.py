"""Panels: the pages of a component on the dashboard, as data. The dashboard draws them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from redis_kit.core.errors import InvalidValue
from redis_kit.core.text import seconds_of

Text = str | Promise
AnyCallable = TypeVar("AnyCallable", bound=Callable[..., Any])
MOST_ROWS = 100
NAME = _("Name")


@dataclass(frozen=True)
class Figure:
    """One number with its name. ``alarm`` marks it as something to look at."""

    label: Text
    value: Any
    hint: Text = ""
    alarm: bool = False


@dataclass(frozen=True)
class Ring:
    """A cell: how much of a whole is left, drawn as a circle beside its text. ``share`` is 0 to 1."""

    value: Any
    share: float


@dataclass(frozen=True)
class Meter:
    """A cell: a number out of ``most``, drawn as a bar beside both. It has no bar if ``most`` is 0, for unknown.

    A full bar is red, as a limit that is reached, unless ``wanted`` says that it is the aim.
    """

    number: float
    most: float
    wanted: bool = False


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
class Link:
    """A cell that links to the page of a panel, by its slug, with a search there, by field."""

    value: Any
    slug: str
    asked: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """Rows under column names; ``empty`` is said when there are none. At most 100 rows.

    ``actions`` names methods of the panel that become buttons of each row, for its first cell as their value, or for
    its place in ``values``: if that is "", the row has no buttons. ``offered``, if given, names for each row
    those of ``actions`` that make sense there.
    """

    title: Text
    columns: Sequence[Text]
    rows: Sequence[Sequence[Any]]
    empty: Text = ""
    actions: Sequence[str] = ()
    values: Sequence[str] = ()
    offered: Sequence[Sequence[str]] = ()


@dataclass(frozen=True)
class Bars:
    """A bar chart: (label, value) from left to right, drawn from 0. It is shown with its data as a table."""

    title: Text
    bars: Sequence[tuple[Text, float]]


@dataclass(frozen=True)
class LineChart:
    """Up to five lines over the same labels, drawn from 0: the name and the values of each; None leaves a gap.

    It is shown with its data as a table. The first line is the one that matters; the others are dashed.
    """

    title: Text
    labels: Sequence[Text]
    lines: Sequence[tuple[Text, Sequence[float | None]]]


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
    month. At most 800 squares.
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

    A drawing has at most 60 boxes. A table beside it should hold the same, as text.
    """

    title: Text
    boxes: Sequence[Box]
    arrows: Sequence[tuple[int, int]]
    summary: Text = ""


@dataclass(frozen=True)
class Listing:
    """A long text of several lines, such as a traceback: closed until opened. 20,000 characters are shown."""

    title: Text
    text: str


@dataclass(frozen=True)
class Pages:
    """Links to the previous and the next page of a list: page ``number`` of ``count``, each with the viewer's search.

    ``slug`` is that of the panel, which finds the number of a page in ``self.viewer.asked["page"]``.
    """

    slug: str
    number: int
    count: int
    asked: Mapping[str, str] = field(default_factory=dict)


Content = Figure | Table | Bars | LineChart | HeatMap | Graph | Listing | Pages


@dataclass(frozen=True)
class Field:
    """A field of a search form: text, or one of the ``choices`` if given; ``any`` labels the choice of none of them.

    Text that is ``optional`` may be left out. ``choices`` may be a function, which may ask a server: it is called where
    the form is drawn, after ``content()``, and a RedisKitError of it makes the field one for text.
    """

    name: str
    label: Text
    choices: Sequence[str] | Callable[[], Sequence[str]] = ()
    any: Text = ""
    optional: bool = False


@dataclass(frozen=True)
class Search:
    """A form above a panel's content. It changes nothing: the values are in the page's address (GET)."""

    label: Text
    fields: Sequence[Field]


@dataclass(frozen=True)
class Viewer:
    """The viewer of a panel: ``may`` tells whether they have a permission, ``asked`` is their search, by field."""

    may: Callable[[str], bool] = lambda permission: False
    asked: Mapping[str, str] = field(default_factory=dict)


class Panel:
    """One page of the dashboard. It calls its component's public API, never a key, and never scans.

    The dashboard makes one for each request, and sets its ``viewer``.
    """

    slug: ClassVar[str]
    title: ClassVar[Text]
    viewer = Viewer()

    def search(self) -> Search | None:
        """Return the search form for this viewer, or None. The values of its fields are in ``self.viewer.asked``.

        It is called for each button too, so it must not ask a server; choices that need one are a function.
        """
        return None

    def content(self) -> Iterable[Content]:
        """Return the content. The dashboard shows a notice in its place if this raises RedisUnavailable."""
        raise NotImplementedError

    def actions(self) -> dict[str, "Action"]:
        """Return the methods marked with @action, by name."""
        actions = {name: getattr(getattr(type(self), name), "panel_action", None) for name in dir(type(self))}
        return {name: marked for name, marked in actions.items() if marked}


@dataclass(frozen=True)
class Action:
    """A button: its label, the permission it needs, and the questions to its viewer; see action()."""

    label: Text
    permission: str
    confirm: bool = False
    asks: Text | None = NAME
    wants: Text = ""
    named: Callable[[str], str] = str
    typed: bool = False
    effect: Callable[[str], Text] | None = None
    suggests: str = ""

    @property
    def has_value(self) -> bool:
        """Return whether it is run for a value."""
        return self.asks is None or bool(self.asks)

    @property
    def grave(self) -> bool:
        """Return whether its button looks like one that deletes something."""
        return self.confirm or (self.typed and not self.wants)

    @property
    def confirms(self) -> bool:
        """Return whether a confirmation page follows."""
        return self.confirm or self.typed or bool(self.wants)


def action(
    label: Text,
    *,
    permission: str,
    confirm: bool = False,
    asks: Text | None = NAME,
    wants: Text = "",
    named: Callable[[str], str] = str,
    typed: bool = False,
    effect: Callable[[str], Text] | None = None,
    suggests: str = "",
) -> Callable[[AnyCallable], AnyCallable]:
    """Mark a panel's method as a button: POST only, permission checked (``redis_kit.release_locks``), logged.

    The method takes the button's value as text and returns the sentence to show. The value comes from the row of a
    table that names the action, or from a text field labelled ``asks``; with ``asks=None`` from a row alone, and with
    ``asks=""`` there is none, and it is "". ``named`` returns the name that is shown and logged for a value. With
    ``confirm`` the viewer is asked first, and may state a reason for the log; with ``typed`` the viewer has to type
    that name, too. ``effect`` returns sentences about what will happen for a value: how many, whose, what runs. It may
    ask a server, and a RedisKitError of it ends the action. ``wants`` labels a further field on that page, whose text
    is the method's second argument. ``suggests`` names a field of the search, with whose value the text field begins.
    """

    def mark(method: AnyCallable) -> AnyCallable:
        marked = Action(label, permission, confirm, asks, wants, named, typed, effect, suggests)
        method.panel_action = marked  # type: ignore[attr-defined]
        return method

    return mark


def duration(text: str) -> float:
    """Return the seconds of what a viewer entered, such as 90, 15m or 7 days. Raises InvalidValue for other text."""
    with suppress(ValueError):
        if seconds := seconds_of(text):
            return seconds
    raise InvalidValue(_("Enter a duration in seconds, or with a unit, such as 15m, 2h or 7d."))
