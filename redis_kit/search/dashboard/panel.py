"""The dashboard's page about search."""

from collections.abc import Iterator, Sequence
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from redis_kit.core.indexes.panel import IndexPanel
from redis_kit.core.panels import MOST_ROWS, Bytes, Content, Figure, Lines, Table
from redis_kit.search.inspection import IndexInfo
from redis_kit.search.inventory import all_indexes


class SearchPanel(IndexPanel):
    """The indexes, and the queries that were slow or found nothing."""

    slug = "search"
    title = gettext_lazy("Search")
    inventory = all_indexes
    columns = (
        gettext_lazy("Documents"),
        gettext_lazy("Words"),
        gettext_lazy("Memory"),
        gettext_lazy("Last rebuild"),
        gettext_lazy("Searches"),
        gettext_lazy("State"),
    )

    def details(self, infos: Sequence[IndexInfo]) -> Iterator[Content]:
        """Return the queries of all indexes."""
        slow = [(text, info.name, time) for info in infos for time, text in info.slow_queries]
        empty = [(text, info.name, time) for info in infos for time, text in info.empty_queries]
        for title, queries in ((_("Slow queries"), slow), (_("Queries without a result"), empty)):
            latest = sorted(queries, key=lambda row: row[2], reverse=True)[:MOST_ROWS]
            yield Table(title, (_("Query"), _("Index"), _("Time")), latest, empty=_("There are none of the last day."))

    def figures(self, infos: Sequence[IndexInfo]) -> Iterator[Figure]:
        """Return what all indexes hold."""
        yield Figure(_("Documents"), sum(info.documents for info in infos))
        yield Figure(_("Memory"), Bytes(sum(info.memory for info in infos)))

    def incomplete(self, info: IndexInfo) -> str:
        """See IndexPanel.incomplete()."""
        return _("%s may miss changes") if info.rebuilt else _("%s is not built")

    def cells(self, info: IndexInfo) -> tuple[Any, ...]:
        """Return the cells of an index."""
        searches = Lines((info.searches, _("%d without a result") % info.empty, _("%d slow") % info.slow))
        memory = Bytes(info.memory) if info.memory else ""
        return info.documents, info.words, memory, info.rebuilt, searches, _state(info)


def _state(info: IndexInfo) -> Lines:
    state = _("complete") if info.complete else _("may miss changes: rebuild it")
    if info.rebuilding:
        state = _("is being rebuilt")
    elif not all_indexes.is_of_model(info):
        state = _("no class has it")
    elif info.rebuilt is None:
        state = _("not built: rebuild it")
    waiting = ngettext("%d change waits", "%d changes wait", info.waiting) % info.waiting if info.waiting else ""
    return Lines((state, waiting))
