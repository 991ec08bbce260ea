"""Bloom filters: whether a value was added before, in little memory, and look-ups of models that ask first."""

from typing import TYPE_CHECKING

from redis_kit.core.lazy import lazily

if TYPE_CHECKING:
    from redis_kit.bloom.filter import BloomFilter as BloomFilter
    from redis_kit.bloom.model_filter import BloomManager as BloomManager
    from redis_kit.bloom.model_filter import BloomQuerySet as BloomQuerySet
    from redis_kit.bloom.model_filter import ModelFilter as ModelFilter
    from redis_kit.bloom.model_filter import aget_object_or_404 as aget_object_or_404
    from redis_kit.bloom.model_filter import get_object_or_404 as get_object_or_404
    from redis_kit.bloom.state import FilterInfo as FilterInfo

_PUBLIC: dict[str, tuple[str, ...]] = {
    "filter": ("BloomFilter",),
    "model_filter": ("BloomManager", "BloomQuerySet", "ModelFilter", "aget_object_or_404", "get_object_or_404"),
    "state": ("FilterInfo",),
}
__all__ = [name for names in _PUBLIC.values() for name in names]
__getattr__, __dir__ = lazily(__name__, _PUBLIC)
