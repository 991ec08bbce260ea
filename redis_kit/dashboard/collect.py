"""The content of panels, collected so that a panel that fails neither hides nor delays the others."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic

from django.utils.translation import gettext as _

from redis_kit.core.component import components
from redis_kit.core.errors import RedisKitError, RedisUnavailable
from redis_kit.core.panels import Panel
from redis_kit.dashboard.cells import Cell, cell
from redis_kit.dashboard.forms import ActionButton
from redis_kit.dashboard.rendering import (
    BarsView,
    FigureView,
    ListingView,
    PagesView,
    TableView,
    View,
    render,
)

ItemView = TableView | BarsView | ListingView | PagesView
logger = logging.getLogger("redis_kit.dashboard")

# A call to an unavailable server takes up to half a second, and a page at most one.
TIME_LIMIT = 0.4  # seconds in which a page still asks panels after the first one whose server was unavailable


@dataclass
class PanelContent:
    """The content of one panel; ``error`` if the panel could not finish."""

    panel: Panel
    figures: list[FigureView] = field(default_factory=list)
    items: list[ItemView] = field(default_factory=list)
    error: Cell | None = None

    @property
    def title(self) -> Cell:
        """Return the panel's title."""
        return cell(self.panel.title)

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


def panels() -> Iterator[Panel]:
    """Yield the panels of all components, in the order of the components."""
    for component in components():
        yield from component.load_panels()


def collect(
    chosen: Sequence[Panel], buttons: Callable[[Panel], Mapping[str, ActionButton]] = lambda panel: {}
) -> list[PanelContent]:
    """Return the content of panels, with these buttons. Costs what the panels cost, and no call of its own."""
    started, unavailable, contents = monotonic(), False, []
    for panel in chosen:
        content = PanelContent(panel)
        if unavailable and monotonic() - started > TIME_LIMIT:
            content.error = cell(_("Skipped: the server did not answer in time."))
        else:
            unavailable |= _fill(content, buttons(panel))
        contents.append(content)
    return contents


def _fill(content: PanelContent, buttons: Mapping[str, ActionButton]) -> bool:
    """Add what the panel yields, and return whether its server was unavailable."""
    try:
        for piece in content.panel.content():
            content.add(render(piece, buttons))
    except RedisKitError as error:
        content.error = cell(error)
        return isinstance(error, RedisUnavailable)
    except Exception:
        # A defect of one panel must not hide the others from people who look for the cause of an outage.
        logger.exception("The panel %s failed.", type(content.panel).__name__)
        content.error = cell(_("This panel failed. See the log."))
    return False
