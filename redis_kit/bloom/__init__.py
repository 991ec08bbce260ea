"""Bloom filters: whether a value was added before, in little memory, and look-ups of models that ask first."""

from typing import TYPE_CHECKING

from redis_kit.core.lazy import lazily

if TYPE_CHECKING:
    from redis_kit.bloom.filter import BloomFilter
    from redis_kit.bloom.model_filter import (
        BloomManager,
        BloomQuerySet,
        ModelFilter,
        aget_object_or_404,
        get_object_or_404,
    )
    from redis_kit.bloom.state import FilterInfo

__all__ = [
    "BloomFilter",
    "BloomManager",
    "BloomQuerySet",
    "FilterInfo",
    "ModelFilter",
    "aget_object_or_404",
    "get_object_or_404",
]

__getattr__, __dir__ = lazily(
    __name__,
    {
        "filter": ("BloomFilter",),
        "model_filter": ("BloomManager", "BloomQuerySet", "ModelFilter", "aget_object_or_404", "get_object_or_404"),
        "state": ("FilterInfo",),
    },
)
