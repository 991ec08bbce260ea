"""Search over the rows of a model: the class that a project declares, which follows the changes of its rows."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import reduce
from hashlib import blake2b
from typing import Any, ClassVar

from django.db.models import QuerySet
from django.utils.module_loading import import_string

from redis_kit.core import conf
from redis_kit.core.errors import ConfigurationError, InvalidValue, ParameterMismatch, RedisKitError
from redis_kit.core.flow import Flow
from redis_kit.core.indexes.generations import Generations
from redis_kit.core.indexes.model_index import find_index
from redis_kit.core.indexes.row_index import RowIndex
from redis_kit.core.logs.error_text import described
from redis_kit.core.logs.rate_limit import LogRateLimit
from redis_kit.core.text import did_you_mean, shortened
from redis_kit.core.values.numbers import is_number, whole_number
from redis_kit.search.analyzer import Analyzer
from redis_kit.search.documents import Document
from redis_kit.search.engine import MAX_HITS, Answer, IndexMissing, Request, search
from redis_kit.search.fields import Facet, Field, Sort, Text
from redis_kit.search.inspection import IndexInfo, clear, describe, measure
from redis_kit.search.query import parse
from redis_kit.search.results import SearchResult
from redis_kit.search.settings import SearchSettings
from redis_kit.search.store import SearchStore

logger = logging.getLogger("redis_kit")
OPTIONS = {"order", "boost", "limit", "offset", "facets", "fuzzy"}
_log_limit = LogRateLimit()


class SearchIndex(RowIndex):
    """An index over the rows of a model. Declare a subclass in ``models.py``, below the model.

    A method ``prepare_<name>(row)`` returns the value of a field; without it, the attribute of the row is that. A
    subclass may return fewer rows from ``rows()``, or select related ones. ``instance`` is its only object.
    """

    model: Any
    name: Any  # text; a subclass may have a field of this name
    instance: ClassVar[Any]
    #: Words that are not searched for.
    stop_words: ClassVar[Iterable[str]] = ()
    #: A function from a word to its stem, such as ``staticmethod(snowball("english"))``.
    stem: Any = None
    #: A subclass of Analyzer.
    analyzer_class: ClassVar[type[Analyzer]] = Analyzer
    columns: ClassVar[Mapping[str, Field]] = {}
    command = "rk_search"
    distrusted = "answers without it until it is rebuilt"

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        columns = {name: value for name, value in vars(cls).items() if isinstance(value, Field)}
        for name in columns:  # so that a field may have the name of a method or an attribute, such as "name"
            delattr(cls, name)
        cls.columns = {**cls.columns, **columns}
        if hasattr(cls, "model"):
            cls.instance = cls()

    def __init__(self) -> None:
        name = type(self).__name__
        if not self._names_of(Text):
            raise ConfigurationError(f"{name} needs a field of the class Text.")
        if taken := OPTIONS.intersection(self._names_of(Facet)):
            raise ConfigurationError(f"{name} can't have a Facet {taken.pop()!r}: search() has an option of this name.")
        self.analyzer = self.analyzer_class(frozenset(self.stop_words), self.stem)
        super().__init__(self.model, f"{self.model._meta.app_label}.{name}")

    @classmethod
    def search(
        cls,
        text: str = "",
        /,
        *,
        order: str = "relevance",
        boost: Mapping[str, float] | None = None,
        limit: int = 20,
        offset: int = 0,
        facets: Sequence[str] = (),
        fuzzy: bool = False,
        **filters: Any,
    ) -> SearchResult:
        """Return the documents that match best, or in the ``order`` of a sort: "votes", or "-votes" from the largest.

        ``boost`` has shares of the score by sort, together at most 1. ``limit`` is 1 to 1,000. The values of ``facets``
        are counted. ``fuzzy`` finds words within one edit, too. Filters are facets with a value, or with several: a
        document has at least one of them, and with an empty list none is found. None and "" don't filter. Any text is a
        query. Raises InvalidValue for unknown fields.

        One round trip; up to three more at the first use in a process, and one with ``fuzzy``. If Redis is unavailable,
        or the index is missing, ``fallback()`` answers.
        """
        index: SearchIndex = cls.instance
        request = index._request(text, filters, order, boost or {}, facets, fuzzy, limit, offset)
        answer = index.store.run_flow(index._ask(request), if_open=None)
        if answer is None and (rows := index.fallback(text, request.filters)) is not None:
            return SearchResult(index, request, answer, list(rows[offset : offset + limit]), rows.count())
        return SearchResult(index, request, answer)

    @classmethod
    async def asearch(
        cls,
        text: str = "",
        /,
        *,
        order: str = "relevance",
        boost: Mapping[str, float] | None = None,
        limit: int = 20,
        offset: int = 0,
        facets: Sequence[str] = (),
        fuzzy: bool = False,
        **filters: Any,
    ) -> SearchResult:
        """See search()."""
        index: SearchIndex = cls.instance
        request = index._request(text, filters, order, boost or {}, facets, fuzzy, limit, offset)
        answer = await index.store.arun_flow(index._ask(request), if_open=None)
        if answer is None and (rows := index.fallback(text, request.filters)) is not None:
            page = [row async for row in rows[offset : offset + limit]]
            return SearchResult(index, request, answer, page, await rows.acount())
        return SearchResult(index, request, answer)

    def fallback(self, text: str, filters: Mapping[str, Sequence[str]]) -> QuerySet[Any] | None:
        """Return the rows that answer while the index can't: Redis is unavailable, or the index is missing."""
        return None

    def info(self) -> IndexInfo | None:
        """Return the documents, words and memory of the index; None if it was never built. One round trip."""
        return self.store.run_flow(describe(self.store))

    def clear(self) -> bool:
        """Delete the index, and return whether there was one. Until the next rebuild ``fallback()`` answers."""
        return clear(self.name, self.store.using)

    def rebuild(self, *, progress: Callable[[int], object] | None = None) -> int:
        """See ModelIndex.rebuild(). An index that is stored with other fields is deleted first."""
        store = self.store
        try:
            store.run_flow(store.generations.read())
        except ParameterMismatch:
            self.clear()
        try:
            count = super().rebuild(progress=progress)
            with suppress(RedisKitError):  # the memory is not known then
                store.run_flow(measure(store))
        finally:
            with suppress(RedisKitError):  # the next rebuild deletes what is left
                store.run_flow(store.clean())
        return count

    @property
    def store(self) -> SearchStore:
        """Return what is stored in Redis."""
        analysis = "\n".join([getattr(self.stem, "__qualname__", ""), *sorted(self.analyzer.stop_words)])
        digest = blake2b(analysis.encode(), digest_size=3).hexdigest()
        return SearchStore(self.name, " ".join([*map(str, self.columns.values()), digest]))

    @property
    def using(self) -> str:
        """Return the alias of its connection."""
        return self.store.using

    @property
    def generations(self) -> Generations:
        """See RowIndex.generations."""
        return self.store.generations

    def document(self, row: Any) -> Document:
        """See RowIndex.document()."""
        values = {name: self.value(row, name) for name in self.columns}
        return Document.of(values, self.columns.values(), self.analyzer)

    def value(self, row: Any, name: str) -> Any:
        """Return the value of a field for a row."""
        if prepare := getattr(self, f"prepare_{name}", None):
            return prepare(row)
        return reduce(getattr, self.columns[name].source.split("."), row)

    def texts(self, row: Any) -> dict[str, str]:
        """Return the texts of a row by field."""
        return {name: Text.clean(self.value(row, name)) for name in self._names_of(Text)}

    def write(self, documents: Mapping[str, Document], gone: Sequence[str], writer: str, rebuild: str = "") -> None:
        """See RowIndex.write()."""
        store = self.store
        store.run_flow(store.write(documents, gone, self.writer_key, writer, rebuild))

    def refresh_unless_busy(self) -> bool:
        """See RowIndex. Changes of an index that is stored with other fields are left to processes that have these."""
        with suppress(ParameterMismatch):
            self.store.run_flow(self.generations.read())
            return super().refresh_unless_busy()
        return True

    def schedule(self) -> None:
        """See RowIndex.schedule(). If the task can't be enqueued, a thread writes the changes."""
        if path := conf.section(SearchSettings).TASK:
            try:
                task = import_string(path)
                (task.enqueue if hasattr(task, "enqueue") else task.delay)(self.name)
                return
            except Exception as error:  # of the project or its broker: the save goes on
                logger.error("search: the task %s was not enqueued: %s", path, described(error))  # noqa: TRY400
        super().schedule()

    def _request(
        self,
        text: str,
        filters: Mapping[str, Any],
        order: str,
        boosts: Mapping[str, float],
        facets: Sequence[str],
        fuzzy: bool,
        limit: int,
        offset: int,
    ) -> Request:
        for value, kinds, what in (
            (text, str, "A query is text"),
            (order, str, 'The order is "relevance" or the name of a Sort'),
            (boosts, Mapping, "A boost has shares by the names of Sorts"),
            (facets, (list, tuple, set), "facets is a list of names"),
        ):
            if not isinstance(value, kinds):
                raise InvalidValue(f"{what}, not {shortened(value)}.")
        sort = order.removeprefix("-")
        sorts = [*boosts, *[sort] * (order != "relevance")]
        for kind, names in ((Facet, [*filters, *facets]), (Sort, sorts)):
            for name in names:
                self._require(kind, name)
        for name, share in boosts.items():
            if not is_number(share) or not 0 <= share <= 1:
                raise InvalidValue(f"The boost of {name!r} must be a share from 0 to 1, not {shortened(share)}.")
        if sum(boosts.values()) > 1:
            raise InvalidValue(f"The boosts are {sum(boosts.values()):g} together, and at most 1 is allowed.")
        whole_number("limit", limit, (1, MAX_HITS))
        whole_number("offset", offset, (0, 10**9))
        values = {name: Facet.clean(value) for name, value in filters.items() if value is not None and value != ""}
        sign = 0 if order == "relevance" else 1 if order.startswith("-") else -1
        query = parse(text, self.analyzer)
        return Request(text, query, values, (sort, sign), boosts, tuple(facets), fuzzy, limit, offset)

    def _require(self, kind: type[Field], name: str) -> None:
        if name not in (names := self._names_of(kind)):
            hint = did_you_mean(name, names, f"There are: {', '.join(names) or 'none'}.")
            raise InvalidValue(f"{type(self).__name__} has no {kind.__name__} {shortened(name)}. {hint}")

    def _names_of(self, kind: type[Field]) -> list[str]:
        return [name for name, column in self.columns.items() if isinstance(column, kind)]

    def _ask(self, request: Request) -> Flow[Answer | None]:
        try:
            return (yield from search(self.store, request))
        except (IndexMissing, ParameterMismatch) as error:
            if self.store.policy() == "raise":
                raise
            if _log_limit.allows(f"{self.name} {type(error).__name__}"):
                logger.error("search: %r can't answer, its fallback does: %s", self, error)  # noqa: TRY400
            return None


def refresh(name: str) -> None:
    """Write the rows of an index that have changed. The body of the task that ``REDIS_KIT["SEARCH"]["TASK"]`` names."""
    find_index(SearchIndex, name).refresh_unless_busy()
