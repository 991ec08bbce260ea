"""Bloom filters: whether a value was added before, in little memory, and look-ups of models that ask first."""

from typing import TYPE_CHECKING

from redis_kit.core.lazy import lazily

if TYPE_CHECKING:
    from redis_kit.bloom.errors import ParameterMismatch, RebuildLost, RebuildRunning
    from redis_kit.bloom.filter import BloomFilter
    from redis_kit.bloom.model_filter import ModelFilter, aget_object_or_404, get_object_or_404

__all__ = [
    "BloomFilter",
    "ModelFilter",
    "ParameterMismatch",
    "RebuildLost",
    "RebuildRunning",
    "aget_object_or_404",
    "get_object_or_404",
]

__getattr__, __dir__ = lazily(
    __name__,
    {
        "filter": ("BloomFilter",),
        "model_filter": ("ModelFilter", "aget_object_or_404", "get_object_or_404"),
        "errors": ("ParameterMismatch", "RebuildLost", "RebuildRunning"),
    },
)
