"""Autocomplete: texts that are found by the beginnings of their words, those of models among them, and recent lists."""

from typing import TYPE_CHECKING

from redis_kit.core.lazy import lazily

if TYPE_CHECKING:
    from redis_kit.autocomplete.index import Autocomplete, Entry, Hit
    from redis_kit.autocomplete.inspection import IndexInfo
    from redis_kit.autocomplete.model_autocomplete import ModelAutocomplete
    from redis_kit.autocomplete.recent_list import RecentList
    from redis_kit.autocomplete.views import AutocompleteView

__all__ = ["Autocomplete", "AutocompleteView", "Entry", "Hit", "IndexInfo", "ModelAutocomplete", "RecentList"]

__getattr__, __dir__ = lazily(
    __name__,
    {
        "index": ("Autocomplete", "Entry", "Hit"),
        "inspection": ("IndexInfo",),
        "model_autocomplete": ("ModelAutocomplete",),
        "recent_list": ("RecentList",),
        "views": ("AutocompleteView",),
    },
)
