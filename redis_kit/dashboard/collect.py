"""The content of panels, collected so that a panel that fails neither hides nor delays the others."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from redis_kit.core.component import components
from redis_kit.core.errors import RedisKitError, RedisUnavailable
from redis_kit.core.panels import Content, Link, Panel
from redis_kit.dashboard.cells import Cell, cell
from redis_kit.dashboard.forms import ActionButton
from redis_kit.dashboard.rendering import FigureView, ItemView, View, render

logger = logging.getLogger("redis_kit.dashboard")

# A call to an unavailable server takes up to half a second, and a page at most one.
TIME_LIMIT = 0.4  # seconds in which a page still asks panels after the first one whose server was unavailable

# How the reasons of outages begin. The rest, an address and the text of the client library, stays in English.
REASONS = {
    "Redis can't be reached": gettext_lazy("Redis can't be reached"),
    "Redis can't serve now": gettext_lazy("Redis can't serve now"),
    "The Cluster has no node that answers.": gettext_lazy("The Cluster has no node that answers."),
}


@dataclass
class PanelContent:
    """The content of one panel; ``error`` if the panel could not finish, and ``outage`` if a server is the cause."""

    panel: Panel
    figures: list[FigureView] = field(default_factory=list)
    items: list[ItemView] = field(default_factory=list)
    error: Cell | None = None
    outage: RedisUnavailable | None = None
    skipped: bool = False

    @property
    def title(self) -> Cell:
        """Return the panel's title."""
        return cell(self.panel.title)

    @property
    def link(self) -> Cell:
        """Return the panel's title as a link to its page."""
        return cell(Link(self.panel.title, self.panel.slug))

    @property
    def is_missing(self) -> bool:
        """Return whether there is nothing of it because of an outage."""
        return self.skipped or (self.outage is not None and not self.figures and not self.items)

    def add(self, view: View) -> None:
        """Add a view: figures come first, then tables and charts in their order."""
        if isinstance(view, FigureView):
            self.figures.append(view)
        else:
            self.items.append(view)

    @property
    def summary(self) -> list[ItemView]:
        """Return the first of the tables and charts, in short."""
        return [item.first(5) for item in self.items[:1]]


@dataclass
class Outage:
    """A connection that is unavailable, and the panels that use it. ``name`` is its alias; empty if it is unknown."""

    name: Cell
    reason: Cell
    contents: list[PanelContent] = field(default_factory=list)


def panels() -> Iterator[Panel]:
    """Yield the panels of all components, in the order of the components."""
    for component in components():
        yield from component.load_panels()


def collect(panel: Panel, buttons: Mapping[str, ActionButton]) -> PanelContent:
    """Return the content of a panel's page, with these buttons. Costs what the panel costs, and no call of its own."""
    content = PanelContent(panel)
    _fill(content, panel.content, buttons)
    return content


def summaries(chosen: Sequence[Panel]) -> list[PanelContent]:
    """Return the summaries of panels, without those that have none. Costs what the panels cost."""
    started, unavailable, contents = monotonic(), False, []
    for panel in chosen:
        content = PanelContent(panel)
        if unavailable and monotonic() - started > TIME_LIMIT:
            content.skipped = True
        else:
            unavailable |= _fill(content, panel.summary, {})
        if content.figures or content.items or content.error or content.skipped:
            contents.append(content)
    return contents


def outages(contents: Iterable[PanelContent]) -> list[Outage]:
    """Return the connections that are unavailable, in the order in which the panels met them."""
    by_connection: dict[str, Outage] = {}
    for content in contents:
        if (error := content.outage) is not None:
            reason = text_of(error)
            outage = by_connection.setdefault(error.using or reason, Outage(cell(error.using), cell(reason)))
            outage.contents.append(content)
    return list(by_connection.values())


def text_of(error: RedisKitError) -> str:
    """Return the text of an error: of an outage the reason, with its beginning in the active language."""
    text = (isinstance(error, RedisUnavailable) and error.reason) or str(error)
    begin = next((begin for begin in REASONS if text.startswith(begin)), "")
    return f"{REASONS.get(begin, '')}{text.removeprefix(begin)}"


def _fill(content: PanelContent, pieces: Callable[[], Iterable[Content]], buttons: Mapping[str, ActionButton]) -> bool:
    """Add what the panel yields, and return whether its server was unavailable."""
    try:
        for piece in pieces():
            content.add(render(piece, buttons))
    except RedisUnavailable as error:
        content.error, content.outage = cell(text_of(error)), error
    except RedisKitError as error:
        content.error = cell(text_of(error))
    except Exception:
        # A defect of one panel must not hide the others from people who look for the cause of an outage.
        logger.exception("The panel %s failed.", type(content.panel).__name__)
        content.error = cell(_("This panel failed. See the log."))
    return content.outage is not None
