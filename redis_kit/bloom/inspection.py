"""All filters: those on each connection, and those of models that nothing was added to yet."""

from typing import Any

from redis_kit.bloom.filter import BloomFilter
from redis_kit.bloom.model_filter import ModelFilter
from redis_kit.bloom.parameters import OF_MODEL, BloomParameters
from redis_kit.bloom.settings import BloomSettings
from redis_kit.bloom.state import FilterInfo, describe
from redis_kit.core.flow import Flow
from redis_kit.core.indexes.inventory import Inventory
from redis_kit.core.primitive import Primitive


class _Stored(Primitive):
    """A filter whose parameters are those that are stored."""

    component, settings = "bloom", BloomSettings


class _Filters(Inventory):
    """All filters: overfull ones first, then those of models, then by name."""

    primitive, kind, counted = _Stored, ModelFilter, "items"

    def describe(self, index: Primitive) -> Flow[FilterInfo | None]:
        return describe(index)

    def describe_model(self, index: Any) -> Flow[FilterInfo]:
        stored = yield from describe(index.filter, index.filter.parameters.source)
        return stored or FilterInfo.empty(index.filter)

    def clear(self, info: FilterInfo) -> None:
        stored_filter(info).clear()

    def order(self, info: FilterInfo) -> Any:
        return not info.is_overfull, not info.of_model, info.name, info.using


filters = _Filters()


def stored_filter(info: FilterInfo) -> BloomFilter:
    """Return a filter with the parameters that are stored."""
    parameters = BloomParameters(info.capacity, info.target_error, info.window, OF_MODEL if info.of_model else "")
    return BloomFilter.with_parameters(info.name, parameters, info.using)
