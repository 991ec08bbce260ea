"""The dashboard's page about autocomplete."""

from collections.abc import Iterator, Sequence
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from redis_kit.autocomplete.inspection import IndexInfo
from redis_kit.autocomplete.inventory import all_indexes, stored_index
from redis_kit.core.indexes.panel import IndexPanel
from redis_kit.core.panels import Content, Field, Figure, Search, Table


class AutocompletePanel(IndexPanel):
    """The indexes, and what a text finds in one."""

    slug = "autocomplete"
    title = gettext_lazy("Autocomplete")
    inventory = all_indexes
    columns = (gettext_lazy("Entries"), gettext_lazy("Scopes"), gettext_lazy("State"))

    def search(self) -> Search | None:
        """Return the search in an index, for viewers that may clear it."""
        if not self.viewer.may("redis_kit.change_indexes"):
            return None
        scope = Field("scope", gettext_lazy("Scope"), optional=True)
        return Search(_("Search"), [Field("index", gettext_lazy("Index")), scope, Field("text", gettext_lazy("Text"))])

    def content(self) -> Iterator[Content]:
        """Return the answer to a search, and a page of indexes. Two round trips, and two for a search."""
        name, scope, text = (self.viewer.asked.get(field, "").strip() for field in ("index", "scope", "text"))
        if name and text and self.search():
            yield _answer(name, scope or None, text)
        yield from super().content()

    def figures(self, infos: Sequence[IndexInfo]) -> Iterator[Figure]:
        """Return what all indexes hold."""
        yield Figure(_("Entries"), sum(info.entries for info in infos))

    def cells(self, info: IndexInfo) -> tuple[Any, ...]:
        """Return the cells of an index."""
        return info.entries, info.scopes, _state(info)


def _answer(name: str, scope: str | None, text: str) -> Content:
    infos = all_indexes.find(name, any_case=True)
    hits = [hit for info in infos for hit in stored_index(info, scope).search(text, 20)]
    empty = _("Nothing begins with this text.") if infos else _("There is no index with this name.")
    return Table(_("Search in %s") % name, (_("Text"), _("Id")), [(hit.text, hit.id) for hit in hits], empty=empty)


def _state(info: IndexInfo) -> str:
    if info.rebuilding:
        return _("is being rebuilt")
    if not all_indexes.is_of_model(info):
        return ""
    return _("complete") if info.complete else _("not asked: rebuild it")
