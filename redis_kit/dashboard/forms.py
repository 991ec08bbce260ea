"""The forms of a panel's page: its search, and the buttons that its viewer may use."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple
from urllib.parse import quote

from redis_kit.core.errors import RedisKitError
from redis_kit.core.panels import Action, Field, Panel, Text
from redis_kit.dashboard.cells import cell

LONGEST_LABEL = 100  # characters of a choice


class ActionButton(NamedTuple):
    """The button of an action that this viewer may use; ``url`` is the target of its form."""

    name: str
    action: Action
    url: str


@dataclass(frozen=True)
class FieldView:
    """A field of a search form, with the value of the current search."""

    field: Field
    value: str

    @cached_property
    def choices(self) -> Sequence[str]:
        """Return the choices; none if the server is unavailable, which the panel's content reports."""
        if not callable(self.field.choices):
            return self.field.choices
        try:
            return self.field.choices()
        except RedisKitError:
            return ()

    @property
    def options(self) -> list[tuple[str, str]]:
        """Return the choices with their labels, which are cut."""
        labels = (cell(label, LONGEST_LABEL).text for label in self.field.labels or self.choices)
        return list(zip(self.choices, labels, strict=True))


class SearchView(NamedTuple):
    """A search form."""

    label: Text
    fields: Sequence[FieldView]

    @property
    def asked(self) -> dict[str, str]:
        """Return the values of the current search."""
        return {each.field.name: each.value for each in self.fields if each.value}


def search_view(panel: Panel) -> SearchView | None:
    """Return a panel's search form for its viewer, or None."""
    if (search := panel.search()) is None:
        return None
    fields = [FieldView(field, panel.viewer.asked.get(field.name, "")) for field in search.fields]
    return SearchView(search.label, fields)


def quoted(value: Any) -> str:
    """Return a value as a form can carry it unchanged."""
    return quote(str(value), safe="", errors="replace")
