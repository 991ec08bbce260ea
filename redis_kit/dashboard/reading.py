"""Asking panels for their content, so that one that fails neither hides nor delays the others."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic

from django.utils.translation import gettext as _

from redis_kit.core.component import components
from redis_kit.core.errors import RedisKitError, RedisUnavailable
from redis_kit.core.panels import Panel
from redis_kit.dashboard.drawing import BarsDrawn, Drawn, FigureDrawn, ListingDrawn, Offer, TableDrawn, draw
from redis_kit.dashboard.text import Cell, cell

Item = TableDrawn | BarsDrawn | ListingDrawn
logger = logging.getLogger("redis_kit.dashboard")

# A call to a server that is away takes up to half a second, and a page no more than one.
PATIENCE = 0.4  # seconds that a page goes on asking panels after a first one found its server away


@dataclass
class Reading:
    """What one panel had to say; ``error`` where it could not finish."""

    panel: Panel
    figures: list[FigureDrawn] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)
    error: Cell | None = None

    @property
    def title(self) -> Cell:
        """Return the panel's title."""
        return cell(self.panel.title)

    def add(self, drawn: Drawn) -> None:
        """Put a piece where it is drawn: figures first, then tables and charts in their order."""
        if isinstance(drawn, FigureDrawn):
            self.figures.append(drawn)
        else:
            self.items.append(drawn)

    @property
    def summary(self) -> list[Item]:
        """Return the first of the tables and charts, in short."""
        return [item.first(5) for item in self.items[:1]]


def panels() -> Iterator[Panel]:
    """Yield the panels of all components, in the order of the components."""
    for component in components():
        yield from component.load_panels()


def read(chosen: Sequence[Panel], offers: Callable[[Panel], Mapping[str, Offer]] = lambda panel: {}) -> list[Reading]:
    """Ask panels for their content. Costs what the panels cost, and nothing of its own."""
    started, away, readings = monotonic(), False, []
    for panel in chosen:
        reading = Reading(panel)
        if away and monotonic() - started > PATIENCE:
            reading.error = cell(_("Not asked: the server did not answer in time."))
        else:
            away |= _fill(reading, offers(panel))
        readings.append(reading)
    return readings


def _fill(reading: Reading, offers: Mapping[str, Offer]) -> bool:
    """Add a panel's content to its reading, and return whether its server was away."""
    try:
        for content in reading.panel.content():
            reading.add(draw(content, offers))
    except RedisKitError as error:
        reading.error = cell(error)
        return isinstance(error, RedisUnavailable)
    except Exception:
        # A defect of one panel must not take the others from people who look for the cause of an outage.
        logger.exception("The panel %s failed.", type(reading.panel).__name__)
        reading.error = cell(_("This panel failed. The log says why."))
    return False
