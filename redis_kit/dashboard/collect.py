"""The content of panels, collected so that a panel that fails does not hide the others."""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from django.template.loader import render_to_string
from django.utils.translation import get_language, gettext_lazy
from django.utils.translation import gettext as _

from redis_kit.core.component import components
from redis_kit.core.errors import RedisKitError, RedisUnavailable
from redis_kit.core.panels import Link, Pages, Panel
from redis_kit.dashboard.cells import Cell, cell
from redis_kit.dashboard.forms import ActionButton
from redis_kit.dashboard.rendering import FigureView, ItemView, View, render

logger = logging.getLogger("redis_kit.dashboard")

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


class _Drawn(NamedTuple):
    """The content of a page and its HTML."""

    figures: list[FigureView]
    items: list[ItemView]
    html: str


_drawn: dict[tuple[str, str | None, str], _Drawn] = {}


def draw(content: PanelContent, base: str) -> str:
    """Return the HTML of a panel's page. Most refreshes ask for the same, and to compare is quicker than to draw."""
    key = content.panel.slug, get_language(), base
    drawn = _drawn.get(key)
    if drawn and not content.error and (drawn.figures, drawn.items) == (content.figures, content.items):
        return drawn.html
    html = render_to_string("redis_kit/dashboard/_panel.html", {"content": content, "base": base})
    if not content.error:
        _drawn[key] = _Drawn(content.figures, content.items, html)
    return html


def text_of(error: RedisKitError) -> str:
    """Return the text of an error: of an outage the reason, with its beginning in the active language."""
    text = (isinstance(error, RedisUnavailable) and error.reason) or str(error)
    begin = next((begin for begin in REASONS if text.startswith(begin)), "")
    return f"{REASONS.get(begin, '')}{text.removeprefix(begin)}"
