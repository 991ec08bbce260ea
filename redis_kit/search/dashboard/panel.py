"""The dashboard's page about search."""

from collections.abc import Iterator, Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from redis_kit.core import conf
from redis_kit.core.flow import Flow
from redis_kit.core.indexes.model_index import find_index, indexes
from redis_kit.core.panels import MOST_ROWS, Alert, Bytes, Content, Figure, Lines, Pages, Panel, Table, Tile, action
from redis_kit.search.index import SearchIndex
from redis_kit.search.inspection import IndexInfo, clear, list_indexes, read_indexes
from redis_kit.search.settings import SearchSettings

PERMISSION = "redis_kit.change_indexes"


def _names() -> list[str]:
    return sorted(index.name for index in indexes(SearchIndex))


def _effect_of_clear(name: str) -> str:
    using = conf.section(SearchSettings).USING
    count = sum(info.documents for info in list_indexes(using, count=1000)[1] if info.name == name)
    return ngettext("%(count)d document is deleted.", "%(count)d documents are deleted.", count) % {"count": count}


class SearchPanel(Panel):
    """The indexes, and the queries that were slow or found nothing."""

    slug = "search"
    title = gettext_lazy("Search")

    def content(self) -> Iterator[Content]:
        """Return a page of indexes, and their queries. Two round trips."""
        number, using = self.viewer.page, conf.section(SearchSettings).USING
        total, infos = list_indexes(using, start=(number - 1) * MOST_ROWS, count=MOST_ROWS)
        yield from _figures(total, infos)
        names = _names()
        yield Table(
            _("Indexes"),
            (_("Name"), _("Documents"), _("Words"), _("Memory"), _("Last rebuild"), _("Searches"), _("State")),
            [_row(info, info.name in names) for info in infos],
            empty=_("There are no indexes."),
            actions=("rebuild", "clear"),
            offered=[("rebuild", "clear") if info.name in names else ("clear",) for info in infos],
        )
        if total > MOST_ROWS:
            yield Pages(self.slug, number, -(-total // MOST_ROWS), {})
        slow = [(time, info.name, text) for info in infos for time, text in info.slow_queries]
        empty = [(time, info.name, text) for info in infos for time, text in info.empty_queries]
        for title, queries in ((_("Slow queries"), slow), (_("Queries without a result"), empty)):
            rows = [(text, name, time) for time, name, text in sorted(queries, reverse=True)[:MOST_ROWS]]
            yield Table(title, (_("Query"), _("Index"), _("Time")), rows, empty=_("There are none of the last day."))

    def reads(self) -> dict[str, Flow[Any]]:
        """Return the first indexes. Two round trips."""
        using = conf.section(SearchSettings).USING
        return {using: read_indexes(using, 0, MOST_ROWS)}

    def tile(self, replies: Mapping[str, Any]) -> Tile | None:
        """Return how many documents there are, and an alert for each index that misses a change."""
        ((total, infos),) = replies.values()
        alerts = [
            Alert(_("%s may miss changes") % info.name, _("rebuild it"))
            for info in infos
            if not info.complete and not info.rebuilding
        ]
        return Tile(list(_figures(total, infos)), None, alerts) if total else None

    @action(gettext_lazy("Rebuild"), permission=PERMISSION, asks=None, confirm=True, harmless=True)
    def rebuild(self, name: str) -> str:
        """Read the rows of the model again, in a thread of this process."""
        find_index(SearchIndex, name).rebuild_in_background()
        return _("The rebuild of %s has begun. Until its end the index answers as before.") % name

    @action(gettext_lazy("Clear"), permission=PERMISSION, asks=None, typed=True, effect=_effect_of_clear)
    def clear(self, name: str) -> str:
        """Delete an index with all its documents."""
        clear(name, conf.section(SearchSettings).USING)
        return _("The index %s was deleted.") % name


def _figures(total: int, infos: list[IndexInfo]) -> Iterator[Figure]:
    yield Figure(_("Indexes"), total)
    yield Figure(_("Documents"), sum(info.documents for info in infos))
    yield Figure(_("Memory"), Bytes(sum(info.memory for info in infos)))


def _row(info: IndexInfo, has_class: bool) -> tuple[Any, ...]:
    searches = Lines((info.searches, _("%d without a result") % info.empty, _("%d slow") % info.slow))
    memory = Bytes(info.memory) if info.memory else ""
    return info.name, info.documents, info.words, memory, info.rebuilt, searches, _state(info, has_class)


def _state(info: IndexInfo, has_class: bool) -> Any:
    state = _("complete") if info.complete else _("may miss changes: rebuild it")
    if info.rebuilding:
        state = _("is being rebuilt")
    elif not has_class:
        state = _("no class has it")
    waiting = ngettext("%d change waits", "%d changes wait", info.waiting) % info.waiting if info.waiting else ""
    return Lines((state, waiting))
