"""Search over the rows of a model: ranked by words and boosts, filtered and counted by facets, for up to 10^6 rows."""

from typing import TYPE_CHECKING

from redis_kit.core.lazy import lazily

if TYPE_CHECKING:
    from redis_kit.search.analyzer import Analyzer as Analyzer
    from redis_kit.search.engine import IndexMissing as IndexMissing
    from redis_kit.search.fields import Facet as Facet
    from redis_kit.search.fields import Sort as Sort
    from redis_kit.search.fields import Text as Text
    from redis_kit.search.index import SearchIndex as SearchIndex
    from redis_kit.search.index import refresh as refresh
    from redis_kit.search.results import SearchResult as SearchResult
    from redis_kit.search.snowball import snowball as snowball

_PUBLIC: dict[str, tuple[str, ...]] = {
    "analyzer": ("Analyzer",),
    "fields": ("Facet", "Sort", "Text"),
    "index": ("SearchIndex", "refresh"),
    "results": ("SearchResult",),
    "engine": ("IndexMissing",),
    "snowball": ("snowball",),
}
__all__ = [name for names in _PUBLIC.values() for name in names]
__getattr__, __dir__ = lazily(__name__, _PUBLIC)
