"""Results: hits with their rows and marked snippets, and what each part of a score added."""

import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from django.db.models import Case, IntegerField, QuerySet, When
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from redis_kit.core.flow import Flow
from redis_kit.core.steps import Batch, Call
from redis_kit.search.analyzer import Analyzer, is_cjk, runs
from redis_kit.search.documents import LONGEST_TEXT
from redis_kit.search.searching import Answer, Request, search

SNIPPET = 160  # characters
LEAD = 40  # of them before the first word that is marked


class Source(StrEnum):
    """Where a result comes from: the index, the database of ``fallback()``, or nowhere."""

    INDEX = "index"
    DATABASE = "database"
    NONE = "none"


class Hit(NamedTuple):
    """A document of a result. ``score`` is that of the order, or 0 if the database found it."""

    id: str
    score: float
    row: Any
    snippets: Mapping[str, SafeString]


class SearchResult:
    """A page of hits. Iterating over it reads their rows, in one query of the database.

    ``total`` is the number of documents that match, ``facets`` counts them by value, ``ids`` are those of the page, and
    ``source`` says what has answered.
    """

    def __init__(
        self,
        index: Any,
        request: Request,
        source: Source,
        total: int,
        scores: Mapping[str, float],
        rows: list[Any] | None = None,
        answer: Answer | None = None,
    ) -> None:
        self.total, self.source, self.scores = total, source, scores
        self.facets: Mapping[str, Mapping[str, int]] = answer.facets if answer else {}
        self.ids = [row.pk for row in rows] if rows is not None else [_key(index.model, id) for id in scores]
        self._index, self._request, self._answer, self._rows = index, request, answer, rows

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"<SearchResult of {self._index.name}: {len(self)} of {self.total}, from {self.source}>"

    def __iter__(self) -> Iterator[Hit]:
        if self._rows is None:
            self._rows = list(self.to_queryset())
        return iter([self._hit(row) for row in self._rows])

    async def __aiter__(self) -> AsyncIterator[Hit]:
        if self._rows is None:
            self._rows = [row async for row in self.to_queryset()]
        for row in self._rows:
            yield self._hit(row)

    def to_queryset(self) -> QuerySet[Any]:
        """Return the rows of the page in the order of the hits, in one query. Rows that are gone are left out."""
        rows: QuerySet[Any] = self._index.rows()
        if not self.ids:
            return rows.none()
        places = Case(*(When(pk=id, then=place) for place, id in enumerate(self.ids)), output_field=IntegerField())
        return rows.filter(pk__in=self.ids).order_by(places)

    def explain(self, id: Any) -> dict[str, float]:
        """Return what each word and boost added to the score of a document, the largest part first.

        One round trip, and one more if the result is older than a minute. Empty if the index has not answered.
        """
        if self._answer is None:
            return {}
        parts: dict[str, float] = self._index.store.run_flow(self._explain(self._answer, str(id)), if_open={})
        return parts

    async def aexplain(self, id: Any) -> dict[str, float]:
        """See explain()."""
        if self._answer is None:
            return {}
        parts: dict[str, float] = await self._index.store.arun_flow(self._explain(self._answer, str(id)), if_open={})
        return parts

    def _explain(self, answer: Answer, id: str) -> Flow[dict[str, float]]:
        factors, *scores = yield from _read_parts(answer, id)
        if factors is None:
            answer = yield from search(self._index.store, self._request)
            factors, *scores = yield from _read_parts(answer, id)
        amounts: dict[str, float] = {}
        for (name, place, _key), score in zip(answer.parts, scores, strict=True):
            if score is not None and factors is not None:
                factor, low = json.loads(factors)[str(place)]
                amounts[name] = (float(score) - low) * factor
        return dict(sorted(amounts.items(), key=lambda pair: -pair[1]))

    def _hit(self, row: Any) -> Hit:
        words = self._answer.words if self._answer else frozenset(self._request.query.positive)
        snippets = {name: snippet(text, words, self._index.analyzer) for name, text in self._index.texts(row).items()}
        return Hit(str(row.pk), self.scores.get(str(row.pk), 0.0), row, snippets)


def snippet(text: str, words: frozenset[str], analyzer: Analyzer) -> SafeString:
    """Return the part of a text around the first of these words, as HTML with ``<mark>`` around each of them."""
    spans = list(_spans(text[:LONGEST_TEXT], words, analyzer))
    first = max(0, spans[0][0] - LEAD) if spans else 0
    if first:  # not in the middle of a word
        first = text.find(" ", first, spans[0][0]) + 1 or first
    last = first + SNIPPET
    parts, at = ["…" if first else ""], first
    for begin, end in spans:
        if end <= last:
            parts += [escape(text[at:begin]), "<mark>", escape(text[begin:end]), "</mark>"]
            at = end
    parts += [escape(text[at:last].rstrip()), "…" if len(text) > last else ""]
    return mark_safe("".join(parts))  # noqa: S308 - each part of the text is escaped


def _spans(text: str, words: frozenset[str], analyzer: Analyzer) -> Iterator[tuple[int, int]]:
    """Yield where words stand in a text: whole words, and parts of runs without spaces."""
    pairs = [re.escape(word) for word in words if is_cjk(word)]
    for begin, end, is_run in runs(text):
        if not is_run:
            if not words.isdisjoint(analyzer.words(text[begin:end])):
                yield begin, end
        elif pairs:
            yield from _joined(begin, re.finditer(f"(?=({'|'.join(pairs)}))", text[begin:end]))


def _joined(start: int, matches: Iterator[re.Match[str]]) -> Iterator[tuple[int, int]]:
    """Yield the parts of a run that pairs cover: those of neighbours overlap."""
    begin = end = -1
    for match in matches:
        if match.start() > end:
            if end > 0:
                yield start + begin, start + end
            begin = match.start()
        end = match.end(1)
    if end > 0:
        yield start + begin, start + end


def _read_parts(answer: Answer, id: str) -> Flow[list[Any]]:
    calls = [Call("ZSCORE", key, id) for _name, _place, key in answer.parts]
    parts: list[Any] = yield Batch([Call("HGET", answer.header, "factors"), *calls])
    return parts


def _key(model: Any, id: str) -> Any:
    field = model._meta.pk
    while field.remote_field:
        field = field.target_field
    return field.to_python(id)
