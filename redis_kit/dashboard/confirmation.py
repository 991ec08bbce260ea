"""The page between a button and its action, and what the viewer entered there."""

from collections.abc import Mapping
from urllib.parse import unquote

from django.utils.translation import gettext as _

from redis_kit.core.errors import InvalidValue
from redis_kit.core.panels import NAME
from redis_kit.dashboard.cells import MAX_TOOLTIP, Cell, cell, visible
from redis_kit.dashboard.forms import ActionButton, quoted

MAX_REASON = 200  # characters


class Confirmation:
    """The value of a button and the viewer's answers. Raises InvalidValue without a value, and errors of ``named``."""

    def __init__(self, button: ActionButton, given: Mapping[str, str]) -> None:
        self.button, action = button, button.action
        self.value = _value(given) if action.has_value else ""
        if action.has_value and not self.value:
            raise InvalidValue(_("Nothing was done: the field was empty."))
        self.name = action.named(self.value)
        self.expected = visible(self.name) if action.typed else ""
        self.wants = given.get("wants", "").strip()
        self.reason = visible(given.get("reason", "").strip()[:MAX_REASON])
        self._answered = not action.confirms or "confirmed" in given
        self._typed = given.get("typed", "").strip()

    @property
    def label(self) -> Cell | None:
        """Return the label of the value."""
        return cell(self.button.action.asks or NAME) if self.button.action.has_value else None

    @property
    def shown(self) -> Cell:
        """Return the name, uncut if the viewer has to type it."""
        return cell(self.name, MAX_TOOLTIP) if self.expected else cell(self.name)

    @property
    def effect(self) -> Cell | None:
        """Return what will happen. May ask a server; raises RedisKitError."""
        effect = self.button.action.effect
        return cell(effect(self.value), MAX_TOOLTIP) if effect else None

    @property
    def row(self) -> str:
        """Return the value as a form can carry it unchanged."""
        return quoted(self.value)

    @property
    def wrong(self) -> bool:
        """Return whether the viewer typed another name. It is compared as shown: with escapes, which can be typed."""
        return self._answered and bool(self.expected) and self._typed != self.expected.strip()

    @property
    def given(self) -> bool:
        """Return whether the action is confirmed."""
        return self._answered and not self.wrong

    @property
    def arguments(self) -> tuple[str, ...]:
        """Return the arguments of the panel's method."""
        return (self.value, self.wants) if self.button.action.wants else (self.value,)

    def entry(self, outcome: str, limit: int) -> str:
        """Return the entry for the admin's log, cut at ``limit`` characters before the reason."""
        label = str(self.button.action.label)
        subject = f"{label}: {self.name}" if self.button.action.has_value else label
        reason = f" {_('Reason: %s') % self.reason}" if self.reason else ""
        return visible(f"{subject} – {outcome}")[:limit] + reason


def _value(given: Mapping[str, str]) -> str:
    row = given.get("row")
    return given.get("value", "").strip() if row is None else unquote(row)
