"""Buttons of panels."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from django.utils.translation import gettext_lazy as _

from redis_kit.core.errors import InvalidValue
from redis_kit.core.panels.content import Text
from redis_kit.core.text import seconds_of

AnyCallable = TypeVar("AnyCallable", bound=Callable[..., Any])
NAME = _("Name")


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
    harmless: bool = False

    @property
    def has_value(self) -> bool:
        """Return whether it is run for a value."""
        return self.asks is None or bool(self.asks)

    @property
    def grave(self) -> bool:
        """Return whether its button looks like one that deletes something."""
        return not self.harmless and (self.confirm or (self.typed and not self.wants))

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
    harmless: bool = False,
) -> Callable[[AnyCallable], AnyCallable]:
    """Mark a panel's method as a button: POST only, permission checked (``redis_kit.release_locks``), logged.

    The method takes the button's value as text and returns the sentence to show, or a Link with that text. The value
    comes from the row of a table that names the action, or from a text field labelled ``asks``; with ``asks=None`` from
    a row alone, and with ``asks=""`` there is none, and it is "". ``named`` returns the name that is shown and logged
    for a value. With ``confirm`` the viewer is asked first, and may state a reason for the log; with ``typed`` the
    viewer has to type that name, too. ``effect`` returns sentences about what will happen for a value: how many, whose,
    what runs. It may ask a server, and a RedisKitError of it ends the action. ``wants`` labels a further field on that
    page, whose text is the method's second argument. A button that asks first is red, as one that deletes something,
    unless it is ``harmless``.
    """

    def mark(method: AnyCallable) -> AnyCallable:
        marked = Action(label, permission, confirm, asks, wants, named, typed, effect, harmless)
        method.panel_action = marked  # type: ignore[attr-defined]
        return method

    return mark


def duration(text: str) -> float:
    """Return the seconds of what a viewer entered, such as 90, 15m or 7 days. Raises InvalidValue for other text."""
    with suppress(ValueError):
        if seconds := seconds_of(text):
            return seconds
    raise InvalidValue(_("Enter a duration in seconds, or with a unit, such as 15m, 2h or 7d."))
