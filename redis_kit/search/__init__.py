"""Search over the rows of a model: ranked by words and boosts, filtered and counted by facets, for up to 10^6 rows."""

from typing import TYPE_CHECKING

from redis_kit.core.lazy import lazily

if TYPE_CHECKING:
    from redis_kit.search.analyzer import Analyzer
    from redis_kit.search.engine import IndexMissing
    from redis_kit.search.fields import Facet, Sort, Text
    from redis_kit.search.index import SearchIndex, refresh
    from redis_kit.search.results import SearchResult
    from redis_kit.search.snowball import snowball

__all__ = [
    "Analyzer",
    "Facet",
    "IndexMissing",
    "SearchIndex",
    "SearchResult",
    "Sort",
    "Text",
    "refresh",
    "snowball",
]

__getattr__, __dir__ = lazily(
    __name__,
    {
        "analyzer": ("Analyzer",),
        "fields": ("Facet", "Sort", "Text"),
        "index": ("SearchIndex", "refresh"),
        "results": ("SearchResult",),
        "engine": ("IndexMissing",),
        "snowball": ("snowball",),
    },
)
