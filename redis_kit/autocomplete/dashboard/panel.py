"""The dashboard's page about autocomplete."""

from collections.abc import Iterator, Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from redis_kit.autocomplete.index import Autocomplete
from redis_kit.autocomplete.inspection import IndexInfo, read_indexes
from redis_kit.autocomplete.model_autocomplete import ModelAutocomplete
from redis_kit.autocomplete.settings import AutocompleteSettings
from redis_kit.core import conf
from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow
from redis_kit.core.indexes.model_index import find_index, indexes
from redis_kit.core.panels import MOST_ROWS, Content, Field, Figure, Pages, Panel, Search, Table, Tile, action


class AutocompletePanel(Panel):
    """The indexes, and what a text finds in one."""

    slug = "autocomplete"
    title = gettext_lazy("Autocomplete")

    def search(self) -> Search | None:
        """Return the search in an index, for viewers that may clear it."""
        if not self.viewer.may("redis_kit.change_indexes"):
            return None
        scope = Field("scope", gettext_lazy("Scope"), optional=True)
        return Search(_("Search"), [Field("index", gettext_lazy("Index")), scope, Field("text", gettext_lazy("Text"))])

    def content(self) -> Iterator[Content]:
        """Return the answer to a search, and a page of indexes. Two round trips, and two for a search."""
        asked = {name: text for name in ("index", "scope", "text") if (text := self.viewer.asked.get(name, "").strip())}
        if asked.keys() >= {"index", "text"} and self.search():
            yield _answer(asked["index"], asked.get("scope"), asked["text"])
        number, using = self.viewer.page, conf.section(AutocompleteSettings).USING
        total, infos = Autocomplete("indexes").run_flow(read_indexes(using, (number - 1) * MOST_ROWS, MOST_ROWS))
        yield from _figures(total, infos)
        of_models = {index.name for index in indexes(ModelAutocomplete)}
        yield Table(
            _("Indexes"),
            (_("Name"), _("Entries"), _("Scopes"), _("State")),
            [(info.name, info.entries, info.scopes, _state(info, of_models)) for info in infos],
            empty=_("There are no indexes."),
            actions=("rebuild", "clear"),
            offered=[("rebuild", "clear") if info.name in of_models else ("clear",) for info in infos],
        )
        if total > MOST_ROWS:
            yield Pages(self.slug, number, -(-total // MOST_ROWS), asked)

    def reads(self) -> dict[str, Flow[Any]]:
        """Return the first indexes. Two round trips."""
        using = conf.section(AutocompleteSettings).USING
        return {using: read_indexes(using, 0, MOST_ROWS)}

    def tile(self, replies: Mapping[str, Any]) -> Tile | None:
        """Return how many indexes there are, with their entries and memory."""
        ((total, infos),) = replies.values()
        return Tile(list(_figures(total, infos))) if total else None

    @action(gettext_lazy("Rebuild"), permission="redis_kit.change_indexes", asks=None, confirm=True, harmless=True)
    def rebuild(self, name: str) -> str:
        """Read the rows of the model again, in a thread of this process."""
        find_index(ModelAutocomplete, name).rebuild_in_background()
        return _("The rebuild of %s has begun. Until its end the index answers as before.") % name

    @action(gettext_lazy("Clear"), permission="redis_kit.change_indexes", asks=None, typed=True)
    def clear(self, name: str) -> str:
        """Delete an index with the entries of all scopes."""
        info = Autocomplete(name).info()
        if not info:
            raise InvalidValue(_("Nothing was done: there is no index %s.") % name)
        Autocomplete(name, unique_ids=info.unique_ids).clear()
        return _("The index %s was deleted.") % name


def _answer(name: str, scope: str | None, text: str) -> Content:
    info = Autocomplete(name).info()
    hits = Autocomplete(name, scope, unique_ids=info.unique_ids).search(text, 20) if info else []
    empty = _("Nothing begins with this text.") if info else _("There is no index with this name.")
    return Table(_("Search in %s") % name, (_("Text"), _("Id")), [(hit.text, hit.id) for hit in hits], empty=empty)


def _figures(total: int, infos: list[IndexInfo]) -> Iterator[Figure]:
    yield Figure(_("Indexes"), total)
    yield Figure(_("Entries"), sum(info.entries for info in infos))


def _state(info: IndexInfo, of_models: set[str]) -> str:
    if info.rebuilding or info.name not in of_models:
        return _("is being rebuilt") if info.rebuilding else ""
    return _("complete") if info.complete else _("not asked: rebuild it")
