"""The dashboard's page about search."""

from collections.abc import Iterator, Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from redis_kit.core import conf
from redis_kit.core.flow import Flow
from redis_kit.core.indexes.model_index import find_index, indexes
from redis_kit.core.panels import (
    MOST_ROWS,
    Alert,
    Bytes,
    Content,
    Field,
    Figure,
    Lines,
    Pages,
    Panel,
    Search,
    Table,
    Tile,
    action,
)
from redis_kit.search.index import SearchIndex
from redis_kit.search.inspection import IndexInfo, clear, list_indexes, read_indexes
from redis_kit.search.settings import SearchSettings

HITS = 10  # of a query that is explained


def _names() -> list[str]:
    return sorted(index.name for index in indexes(SearchIndex))


def _effect_of_clear(name: str) -> str:
    using = conf.section(SearchSettings).USING
    count = sum(info.documents for info in list_indexes(using, count=1000)[1] if info.name == name)
    return ngettext("%(count)d document is deleted.", "%(count)d documents are deleted.", count) % {"count": count}


class SearchPanel(Panel):
    """The indexes, the queries that were slow or found nothing, and what makes up a score."""

    slug = "search"
    title = gettext_lazy("Search")

    def search(self) -> Search:
        """Return the query whose scores are explained."""
        fields = [Field("index", gettext_lazy("Index"), _names), Field("query", gettext_lazy("Query"))]
        return Search(gettext_lazy("Explain"), fields)

    def content(self) -> Iterator[Content]:
        """Return a page of indexes and their queries. Two round trips, and one for each hit that is explained."""
        asked = {name: text for name in ("index", "query") if (text := self.viewer.asked.get(name, "").strip())}
        if len(asked) == 2:
            yield _explained(find_index(SearchIndex, asked["index"]), asked["query"])
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
            yield Pages(self.slug, number, -(-total // MOST_ROWS), asked)
        slow = sorted(((time, info.name, text) for info in infos for time, text in info.slow_queries), reverse=True)
        empty = sorted(((time, info.name, text) for info in infos for time, text in info.empty_queries), reverse=True)
        columns = (_("Time"), _("Index"), _("Query"))
        columns_of_slow = (*columns[:2], _("Milliseconds and query"))
        yield Table(_("Slow queries of the last day"), columns_of_slow, slow[:MOST_ROWS], empty=_("There are none."))
        yield Table(
            _("Queries of the last day without a result"), columns, empty[:MOST_ROWS], empty=_("There are none.")
        )

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

    @action(gettext_lazy("Rebuild"), permission="redis_kit.change_indexes", asks=None, confirm=True, harmless=True)
    def rebuild(self, name: str) -> str:
        """Read the rows of the model again, in a thread of this process."""
        find_index(SearchIndex, name).rebuild_in_background()
        return _("The rebuild of %s has begun. Until its end the index answers as before.") % name

    @action(
        gettext_lazy("Clear"), permission="redis_kit.change_indexes", asks=None, typed=True, effect=_effect_of_clear
    )
    def clear(self, name: str) -> str:
        """Delete an index with all its documents."""
        clear(name, conf.section(SearchSettings).USING)
        return _("The index %s was deleted.") % name


def _explained(index: SearchIndex, text: str) -> Content:
    result = index.search(text, limit=HITS)
    rows = []
    for id, score in result.scores.items():
        parts = [f"{name} {amount:.3f}" for name, amount in result.explain(id).items()]
        rows.append((id, f"{score:.3f}", Lines(parts)))
    columns = (_("Document"), _("Score"), _("Parts"))
    return Table(_("The best documents for %s") % text[:80], columns, rows, empty=_("Nothing was found."))


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
