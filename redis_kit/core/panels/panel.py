"""A page of the dashboard: its content, its search and its viewer."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from redis_kit.core.flow import Flow
from redis_kit.core.panels.action import Action
from redis_kit.core.panels.content import Content, Text
from redis_kit.core.panels.tile import Tile


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
    def page(self) -> int:
        """Return the number of the page of a list that they ask for: 1 unless it is a number of up to 6 digits."""
        number = self.asked.get("page", "")
        return max(1, int(number)) if number.isdecimal() and len(number) <= 6 else 1


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

    def effect_of(self, action: Action, value: str) -> Text:
        """Return what an action will do for a value, as this viewer may see it; "" if it does not say."""
        return action.effect(value) if action.effect else ""

    def actions(self) -> dict[str, Action]:
        """Return the methods marked with @action, by name."""
        actions = {name: getattr(getattr(type(self), name), "panel_action", None) for name in dir(type(self))}
        return {name: marked for name, marked in actions.items() if marked}
