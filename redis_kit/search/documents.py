"""Documents as they are stored: their words with the scores that BM25 gives them, values of facets, and sorts."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from redis_kit.search.analyzer import Analyzer
from redis_kit.search.fields import Facet, Field, Sort, Text

K1, B = 1.2, 0.75  # of BM25, as Lucene has them
SCALE = 10_000  # scores are whole numbers, which small sorted sets store in three bytes
LONGEST_TEXT = 100_000  # characters of a field; the rest is not searched
MOST_WORDS = 10_000  # of a document
BOUNDARY = "/"  # a word that no text has, so that no phrase goes from one field into the next
VERSION = 8  # characters at the beginning of a record


class Document(NamedTuple):
    """A document. ``words`` has all of them in their order, with marks between fields; ``counts`` how often each is.

    A word of a field with weight 3 counts as three, in its number and in the length (BM25F).
    """

    id: str
    words: str
    counts: Mapping[str, float]
    length: int
    facets: Mapping[str, list[str]]
    sorts: Mapping[str, float]

    @classmethod
    def of(cls, id: str, values: Mapping[str, Any], fields: Iterable[Field], analyzer: Analyzer) -> "Document":
        """Return the document of the values of fields. Raises InvalidValue for a sort without an order."""
        counts: dict[str, float] = {}
        words: list[str] = []
        facets: dict[str, list[str]] = {}
        sorts: dict[str, float] = {}
        length = 0.0
        for field in fields:
            value = values[field.name]
            if isinstance(field, Text):
                found = analyzer.words(field.clean(value)[:LONGEST_TEXT])[: MOST_WORDS - len(words)]
                weight = field.weight
                for word in found:
                    counts[word] = counts.get(word, 0) + weight
                length += weight * len(found)
                words += found
                words.append(BOUNDARY)
            elif isinstance(field, Facet):
                facets[field.name] = field.clean(value)
            elif isinstance(field, Sort):
                sorts[field.name] = field.clean(value)
        return cls(id, " ".join(words), counts, round(length), facets, sorts)

    @property
    def record(self) -> str:
        """Return the record without its version. Only words stand between spaces, so phrases are found there alone."""
        rest = json.dumps([self.length, self.facets], separators=(",", ":")).replace(" ", "\\u0020")
        sorts = json.dumps(self.sorts, separators=(",", ":"))
        return f" {self.words} \n{rest}\n{sorts}"

    def impacts(self, average: float) -> dict[str, int]:
        """Return the score of each word before its rarity counts: the part of BM25 that depends on the document."""
        saturation = K1 * (1 - B + B * self.length / average)
        top = (K1 + 1) * SCALE
        scores = {count: round(top * count / (count + saturation)) for count in set(self.counts.values())}
        return {word: scores[count] for word, count in self.counts.items()}


class Stored(NamedTuple):
    """A document as its record has it: enough to take it back."""

    version: str
    content: str
    words: frozenset[str]
    length: int
    facets: Mapping[str, list[str]]
    sorts: frozenset[str]

    @classmethod
    def parse(cls, record: bytes | None) -> "Stored":
        """Return what a record holds; nothing if there is none."""
        if record is None:
            return cls("", "", frozenset(), 0, {}, frozenset())
        text = record.decode()
        version, content = text[:VERSION], text[VERSION:]
        words, rest, sorts = content.split("\n")
        length, facets = json.loads(rest)
        return cls(version, content, frozenset(words.split()) - {BOUNDARY}, length, facets, frozenset(json.loads(sorts)))

    def members(self) -> list[str]:
        """Return the ends of the names of the keys that have the document."""
        return [*members_of(self.facets), *self.words, *map(sort_member, self.sorts)]


def facet_member(name: str, value: str) -> str:
    """Return the end of the name of a value's key. No word begins with this mark."""
    return f"={name}={value}"


def sort_member(name: str) -> str:
    """Return the end of the name of a sort's key."""
    return f"<{name}"


def members_of(facets: Mapping[str, list[str]]) -> list[str]:
    """Return the ends of the names of the keys of all values."""
    return [facet_member(name, value) for name, values in facets.items() for value in values]
