"""All indexes for autocomplete: those on each connection, and those of models that are not built yet."""

from typing import Any

from redis_kit.autocomplete.index import Autocomplete
from redis_kit.autocomplete.inspection import IndexInfo, describe
from redis_kit.autocomplete.model_autocomplete import ModelAutocomplete
from redis_kit.core.flow import Flow
from redis_kit.core.indexes.inventory import Inventory
from redis_kit.core.primitive import Primitive


class _Indexes(Inventory):
    """All indexes: those of models first, then by name."""

    primitive, kind, counted = Autocomplete, ModelAutocomplete, "entries"

    def describe(self, index: Primitive) -> Flow[IndexInfo | None]:
        return describe(index)

    def describe_model(self, index: Any) -> Flow[IndexInfo]:
        stored = yield from describe(index.index())
        return stored or IndexInfo(index.name, index.using, 0, 0, False, False, True)

    def clear(self, info: IndexInfo) -> None:
        stored_index(info).clear()

    def order(self, info: IndexInfo) -> Any:
        return not self.is_of_model(info), info.name, info.using


all_indexes = _Indexes()


def stored_index(info: IndexInfo, scope: str | None = None) -> Autocomplete:
    """Return an index, as it is stored."""
    return Autocomplete(info.name, scope, info.using, unique_ids=info.unique_ids)
