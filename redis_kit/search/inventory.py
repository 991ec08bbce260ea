"""All search indexes: those on each connection, and those of classes that are not built yet."""

from typing import Any

from redis_kit.core.flow import Flow
from redis_kit.core.indexes.inventory import Inventory
from redis_kit.core.primitive import Primitive
from redis_kit.search.index import SearchIndex
from redis_kit.search.inspection import IndexInfo, clear, describe
from redis_kit.search.store import SearchStore


class _Indexes(Inventory):
    """All indexes, by name."""

    primitive, kind, counted = SearchStore, SearchIndex, "documents"

    def describe(self, index: Primitive) -> Flow[IndexInfo | None]:
        return describe(SearchStore(index.name, using=index.using))

    def describe_model(self, index: Any) -> Flow[IndexInfo]:
        stored = yield from describe(index.store)
        return stored or IndexInfo(index.name, index.using, str(index.generations.parameters))

    def clear(self, info: IndexInfo) -> None:
        clear(info.name, info.using)


all_indexes = _Indexes()
