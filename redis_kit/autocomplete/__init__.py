"""Autocomplete: texts that are found by the beginnings of their words, those of models among them, and recent lists."""

from typing import TYPE_CHECKING

from redis_kit.core.lazy import lazily

if TYPE_CHECKING:
    from redis_kit.autocomplete.index import Autocomplete, Entry, Hit
    from redis_kit.autocomplete.inspection import IndexInfo

__all__ = ["Autocomplete", "Entry", "Hit", "IndexInfo"]

__getattr__, __dir__ = lazily(
    __name__,
    {"index": ("Autocomplete", "Entry", "Hit"), "inspection": ("IndexInfo",)},
)
