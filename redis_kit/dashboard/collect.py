"""The content of panels and their tiles on the overview, so that one that fails does not hide the others."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any, NamedTuple

from django.template.loader import render_to_string
from django.utils.translation import get_language, gettext_lazy
from django.utils.translation import gettext as _

from redis_kit.core import flow
from redis_kit.core.component import components
from redis_kit.core.errors import RedisKitError, RedisUnavailable
from redis_kit.core.flow import Flow
from redis_kit.core.gather import gather
from redis_kit.core.panels import Alert, Link, Pages, Panel, Tile
from redis_kit.dashboard.cells import Cell, cell
from redis_kit.dashboard.rendering import ActionButton, FigureView, ItemView, View, figure_view, render

logger = logging.getLogger("redis_kit.dashboard")
# A call to an unavailable server takes up to half a second, and a page at most one.
TIME_LIMIT = 0.4  # seconds in which the overview still asks panels after the first one whose server was unavailable

# How the reasons of outages begin. The rest, an address and the text of the client library, stays in English.
REASONS = {
    "Redis can't be reached": gettext_lazy("Redis can't be reached"),
    "Redis can't serve now": gettext_lazy("Redis can't serve now"),
    "The Cluster has no node that answers.": gettext_lazy("The Cluster has no node that answers."),
}


def may_view(panel: Panel, may: Callable[[str], bool]) -> bool:
    """Return whether somebody may view a panel, given whether they have a permission."""
    return not panel.permission or may(panel.permission)


@dataclass
class Collected:
    """The answer of one panel; ``error`` if it failed, and ``outage`` if a server is the cause."""

    panel: Panel
    error: Cell | None = None
    outage: RedisUnavailable | None = None

    @property
    def title(self) -> Cell:
        """Return the panel's title."""
        return cell(self.panel.title)

    @property
    def link(self) -> Cell:
        """Return the panel's title as a link to its page."""
        return cell(Link(self.panel.title, self.panel.slug))

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Note an error of the panel, so that it hides no other panel."""
        try:
            yield
        except RedisUnavailable as error:
            self.error, self.outage = cell(text_of(error)), error
        except RedisKitError as error:
            self.error = cell(text_of(error))
        except Exception:
            # A defect of one panel must not hide the others from people who look for the cause of an outage.
            logger.exception("The panel %s failed.", type(self.panel).__name__)
            self.error = cell(_("This panel failed. See the log."))


@dataclass
class PanelContent(Collected):
    """The content of a panel's page."""

    figures: list[FigureView] = field(default_factory=list)
    items: list[ItemView] = field(default_factory=list)

    def add(self, view: View) -> None:
        """Add a view: figures come first, then tables and charts in their order."""
        if isinstance(view, FigureView):
            self.figures.append(view)
        else:
            self.items.append(view)


def panels() -> Iterator[Panel]:
    """Yield the panels of all components, in the order of the components."""
    for component in components():
        yield from component.load_panels()


def collect(panel: Panel, buttons: Mapping[str, ActionButton]) -> PanelContent:
    """Return the content of a panel's page, with these buttons. Costs what the panel costs, and no call of its own.

    If the list has ended before the page that the viewer asks for, this is its last page.
    """
    content = PanelContent(panel)
    with content.guarded():
        for piece in panel.content():
            if isinstance(piece, Pages) and piece.number < panel.viewer.page:
                asked = {**panel.viewer.asked, "page": str(piece.number)}
                panel.viewer = replace(panel.viewer, asked=asked)
                return collect(panel, buttons)
            content.add(render(piece, buttons))
    return content


_drawn: dict[tuple[str, str | None, str], tuple[tuple[list[FigureView], list[ItemView]], str]] = {}  # views and HTML


def draw(content: PanelContent, base: str) -> str:
    """Return the HTML of a panel's page. Most refreshes ask for the same, and to compare is quicker than to draw."""
    key, views = (content.panel.slug, get_language(), base), (content.figures, content.items)
    drawn = _drawn.get(key)
    if drawn and not content.error and drawn[0] == views:
        return drawn[1]
    html = render_to_string("redis_kit/dashboard/_panel.html", {"content": content, "base": base})
    if not content.error:
        _drawn[key] = views, html
    return html


class AlertView(NamedTuple):
    """An alert: the title of its panel, a text that links to the panel, its value, and a hint."""

    title: Cell
    text: Cell
    value: Cell
    hint: Cell


@dataclass
class TileView(Collected):
    """A tile; ``skipped`` if its panel was not asked, since other panels waited too long for their servers."""

    tile: Tile | None = None
    skipped: bool = False
    replies: dict[str, Any] = field(default_factory=dict)
    figures: list[FigureView] = field(default_factory=list)
    alerts: list[AlertView] = field(default_factory=list)
    trend: Cell | None = None

    @property
    def is_shown(self) -> bool:
        """Return whether there is a tile or an error that is not an outage."""
        return self.tile is not None or (self.error is not None and self.outage is None)

    @property
    def outages(self) -> Sequence[RedisUnavailable]:
        """Return the errors of the connections that are unavailable."""
        return self.tile.unavailable if self.tile else [self.outage] if self.outage else []

    @property
    def is_wide(self) -> bool:
        """Return whether it stands above the other tiles."""
        return self.tile is not None and self.tile.wide

    def read(self) -> None:
        """Make the tile of the replies, the first error among which is raised."""
        for reply in self.replies.values():
            if isinstance(reply, Exception):
                raise reply
        if tile := self.panel.tile(self.replies):
            self.figures = [figure_view(figure) for figure in tile.figures]
            for alert in (*(Alert.of(figure) for figure in tile.figures if figure.alarm), *tile.alerts):
                link = cell(Link(alert.text, self.panel.slug, alert.asked))
                self.alerts.append(AlertView(self.title, link, cell(alert.value), cell(alert.hint)))
            self.trend = cell(tile.trend) if tile.trend else None
            self.tile = tile


@dataclass
class Outage:
    """A connection that is unavailable, and the panels that use it. ``name`` is its alias; empty if it is unknown."""

    name: Cell
    reason: Cell
    contents: list[TileView] = field(default_factory=list)


def tiles(panels: Sequence[Panel]) -> list[TileView]:
    """Return the tiles of panels. Two round trips for each connection, and those of panels without reads()."""
    deadline, views = _Deadline(), [TileView(panel) for panel in panels]
    for alias, asked in _reads(views).items():
        if deadline.over:
            for view, _read in asked:
                view.skipped = True
            continue
        for (view, _read), reply in zip(asked, _replies(alias, [read for _view, read in asked]), strict=True):
            view.replies[alias] = reply
            deadline.note(reply)
    for view in views:
        if view.skipped or view.error:
            continue
        # Those whose replies have come cost no more time, except an error.
        if deadline.over and not view.replies and view.panel.needs_server:
            view.skipped = True
            continue
        with view.guarded():
            view.read()
        deadline.note(view.outage)
    return views


def outages(views: Iterable[TileView]) -> list[Outage]:
    """Return the connections that are unavailable, in the order in which the panels met them."""
    by_connection: dict[str, Outage] = {}
    for view in views:
        for error in view.outages:
            reason = text_of(error)
            outage = by_connection.setdefault(error.using or reason, Outage(cell(error.using), cell(reason)))
            outage.contents.append(view)
    return list(by_connection.values())


class _Deadline:
    """The time for the panels that are left after the first outage."""

    def __init__(self) -> None:
        self._began, self._outage = monotonic(), False

    @property
    def over(self) -> bool:
        return self._outage and monotonic() - self._began > TIME_LIMIT

    def note(self, result: Any) -> None:
        self._outage |= isinstance(result, RedisUnavailable)


def _reads(views: Iterable[TileView]) -> dict[str, list[tuple[TileView, Flow[Any]]]]:
    """Return what the panels read, by connection."""
    reads: dict[str, list[tuple[TileView, Flow[Any]]]] = {}
    for view in views:
        with view.guarded():
            for alias, read in view.panel.reads().items():
                reads.setdefault(alias, []).append((view, read))
    return reads


def _replies(alias: str, flows: list[Flow[Any]]) -> Iterator[Any]:
    """Yield the result of each flow, or its error."""
    from redis_kit.core import connections  # late, since Django imports the admin at start-up, and this the client

    try:
        yield from flow.run(gather(flows, return_exceptions=True), connections.client(alias))
    except RedisKitError as error:
        yield from [error] * len(flows)


def text_of(error: RedisKitError) -> str:
    """Return the text of an error: of an outage the reason, with its beginning in the active language."""
    text = (isinstance(error, RedisUnavailable) and error.reason) or str(error)
    begin = next((begin for begin in REASONS if text.startswith(begin)), "")
    return f"{REASONS.get(begin, '')}{text.removeprefix(begin)}"
