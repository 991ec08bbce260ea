"""What a viewer gave with a button, and the page between the button and its deed."""

from collections.abc import Mapping
from urllib.parse import unquote

from django.utils.translation import gettext as _

from redis_kit.core.errors import InvalidValue
from redis_kit.core.panels import NAME
from redis_kit.dashboard.drawing import Offer, quoted
from redis_kit.dashboard.text import MOST, Cell, cell, visible

REASON = 200  # characters of a reason that are kept


class Confirmation:
    """What was asked and what was answered. Raises InvalidValue without a value, and what ``named`` raises."""

    def __init__(self, offer: Offer, given: Mapping[str, str]) -> None:
        self.offer, action = offer, offer.action
        self.value = _value(given) if action.has_value else ""
        if action.has_value and not self.value:
            raise InvalidValue(_("Nothing was done: the field was empty."))
        self.name = action.named(self.value)
        self.expected = visible(self.name) if action.typed else ""
        self.wants = given.get("wants", "").strip()
        self.reason = visible(given.get("reason", "").strip()[:REASON])
        self._answered = not action.confirms or "confirmed" in given
        self._typed = given.get("typed", "").strip()

    @property
    def label(self) -> Cell | None:
        """Return what the value is."""
        return cell(self.offer.action.asks or NAME) if self.offer.action.has_value else None

    @property
    def shown(self) -> Cell:
        """Return the name, uncut where it has to be typed."""
        return cell(self.name, MOST) if self.expected else cell(self.name)

    @property
    def row(self) -> str:
        """Return the value as a form can carry it unchanged."""
        return quoted(self.value)

    @property
    def wrong(self) -> bool:
        """Say whether something else was typed than the name as it is shown: with escapes, as these can be typed."""
        return self._answered and bool(self.expected) and self._typed != self.expected.strip()

    @property
    def given(self) -> bool:
        """Say whether the action may go on."""
        return self._answered and not self.wrong

    @property
    def arguments(self) -> tuple[str, ...]:
        """Return what the panel's method is called with."""
        return (self.value, self.wants) if self.offer.action.wants else (self.value,)

    def entry(self, outcome: str, most: int) -> str:
        """Return what the log says."""
        label = str(self.offer.action.label)
        what = f"{label}: {self.name}" if self.offer.action.has_value else label
        reason = f" {_('Reason: %s') % self.reason}" if self.reason else ""
        return visible(f"{what} – {outcome}")[:most] + reason


def _value(given: Mapping[str, str]) -> str:
    row = given.get("row")
    return given.get("value", "").strip() if row is None else unquote(row)
