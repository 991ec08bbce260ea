"""The page between a button and its action, and what the viewer entered there."""

from collections.abc import Mapping, Sequence
from urllib.parse import unquote

from django.utils.translation import gettext as _

from redis_kit.core.errors import InvalidValue
from redis_kit.core.panels import NAME, Panel
from redis_kit.dashboard.cells import MAX_TOOLTIP, Cell, cell, visible
from redis_kit.dashboard.forms import ActionButton, quoted

MAX_REASON = 200  # characters


class Confirmation:
    """The value of a button and the viewer's answers. Raises InvalidValue without a value, and errors of ``named``.

    ``selected`` are the rows that the viewer selected, for a button below a table.
    """

    def __init__(self, button: ActionButton, given: Mapping[str, str], selected: Sequence[str] = ()) -> None:
        self.button, action = button, button.action
        self.value = ""
        if action.has_value:
            self.value = _selected(selected) if "selected" in given else _value(given)
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

    def effect(self, panel: Panel) -> Cell | None:
        """Return what will happen. May ask a server; raises RedisKitError."""
        effect = panel.effect_of(self.button.action, self.value)
        return cell(effect, MAX_TOOLTIP) if effect else None

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

    @property
    def subject(self) -> str:
        """Return what is done to what, as the admin's recent actions show it."""
        label = str(self.button.action.label)
        return f"{label}: {self.name}" if self.button.action.has_value else label

    def entry(self, outcome: str, limit: int) -> str:
        """Return the entry for the admin's log, cut at ``limit`` characters before the reason."""
        reason = f" {_('Reason: %s') % self.reason}" if self.reason else ""
        return visible(f"{self.subject} – {outcome}")[:limit] + reason


def _selected(rows: Sequence[str]) -> str:
    """Return the values of the rows that were selected, one a line. Raises InvalidValue if there are none."""
    if not rows:
        raise InvalidValue(_("Nothing was done: no row was selected."))
    return "\n".join(map(unquote, rows))


def _value(given: Mapping[str, str]) -> str:
    row = given.get("row")
    return given.get("value", "").strip() if row is None else unquote(row)
