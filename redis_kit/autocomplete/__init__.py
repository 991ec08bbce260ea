"""Autocomplete: texts that are found by the beginnings of their words, those of models among them, and recent lists."""

from typing import TYPE_CHECKING

from redis_kit.core.lazy import lazily

if TYPE_CHECKING:
    from redis_kit.autocomplete.index import Autocomplete as Autocomplete
    from redis_kit.autocomplete.index import Entry as Entry
    from redis_kit.autocomplete.index import Hit as Hit
    from redis_kit.autocomplete.inspection import IndexInfo as IndexInfo
    from redis_kit.autocomplete.model_autocomplete import ModelAutocomplete as ModelAutocomplete
    from redis_kit.autocomplete.recent_list import RecentList as RecentList
    from redis_kit.autocomplete.views import AutocompleteView as AutocompleteView

_PUBLIC: dict[str, tuple[str, ...]] = {
    "index": ("Autocomplete", "Entry", "Hit"),
    "inspection": ("IndexInfo",),
    "model_autocomplete": ("ModelAutocomplete",),
    "recent_list": ("RecentList",),
    "views": ("AutocompleteView",),
}
__all__ = [name for names in _PUBLIC.values() for name in names]
__getattr__, __dir__ = lazily(__name__, _PUBLIC)
