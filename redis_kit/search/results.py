"""Results: hits with their rows and marked snippets, and what each part of a score added."""

import re
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, NamedTuple

from django.db.models import Case, IntegerField, QuerySet, When
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from redis_kit.core.flow import Flow
from redis_kit.core.steps import Batch, Call
from redis_kit.search.analyzer import Analyzer, is_pair, runs
from redis_kit.search.documents import LONGEST_TEXT
from redis_kit.search.engine import Answer, Request

SNIPPET = 160  # characters
LEAD = 40  # of them before the first word that is marked


class Hit(NamedTuple):
    """A document of a result. ``score`` is that of the order, or 0 if the database found it."""

    id: str
    score: float
    row: Any
    snippets: Mapping[str, SafeString]


class SearchResult:
    """A page of hits. Iterating over it reads their rows, in one query of the database.

    ``total`` is the number of documents that match, ``facets`` counts them by value, ``ids`` are those of the page, and
    ``source`` says what has answered: ``index``, ``database`` for the rows of ``fallback()``, or ``none``.
    """

    def __init__(
        self, index: Any, request: Request, answer: Answer | None, rows: list[Any] | None = None, total: int = 0
    ) -> None:
        self.scores: Mapping[str, float] = answer.scores if answer else {}
        self.facets: Mapping[str, Mapping[str, int]] = answer.facets if answer else {}
        self.total = answer.total if answer else total
        self.source = "index" if answer else "none" if rows is None else "database"
        self.ids = [_key(index.model, id) for id in self.scores] if rows is None else [row.pk for row in rows]
        self._index, self._request, self._answer, self._rows = index, request, answer, rows

    def __len__(self) -> int:
        return len(self.ids)

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

        One round trip. Empty if the result is older than a minute, or the index has not answered.
        """
        return dict(self._index.store.run_flow(self._explain(str(id)), if_open={}))

    async def aexplain(self, id: Any) -> dict[str, float]:
        """See explain()."""
        return dict(await self._index.store.arun_flow(self._explain(str(id)), if_open={}))

    def _explain(self, id: str) -> Flow[dict[str, float]]:
        if not self._answer:
            return {}
        calls = [Call("ZSCORE", key, id) for key in self._answer.parts.values()]
        factors, *scores = yield Batch([Call("HGET", self._answer.header, "factors"), *calls])
        by_key = dict(zip(self._answer.parts.values(), zip(self._answer.parts, scores, strict=True), strict=True))
        amounts: dict[str, float] = {}
        for line in (factors or b"").decode().splitlines():
            factor, low, key = line.split(" ", 2)
            name, score = by_key.get(key, ("", None))
            if score is not None:
                amounts[name] = (float(score) - float(low)) * float(factor)
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
    tail = text[at:last]
    parts.append(escape(tail if len(text) <= last else f"{tail.rpartition(' ')[0] or tail}…"))
    return mark_safe("".join(parts))  # noqa: S308 - each part of the text is escaped


def _spans(text: str, words: frozenset[str], analyzer: Analyzer) -> Iterator[tuple[int, int]]:
    """Yield where words stand in a text: whole words, and parts of runs without spaces."""
    pairs = "|".join(word for word in words if is_pair(word))
    for begin, end in runs(text):
        if not words.isdisjoint(analyzer.words(text[begin:end])):
            if pairs and is_pair(text[begin : begin + 2]):
                for match in re.finditer(f"(?:(?={pairs}).)+.", text[begin:end]):
                    yield begin + match.start(), begin + match.end()
            else:
                yield begin, end


def _key(model: Any, id: str) -> Any:
    field = model._meta.pk
    while field.remote_field:
        field = field.target_field
    return field.to_python(id)
