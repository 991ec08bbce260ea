"""Documents as they are stored: their words with the scores that BM25 gives them, values of facets, and sorts."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from redis_kit.search.analyzer import Analyzer
from redis_kit.search.fields import Facet, Field, Sort, Text

K1, B = 1.2, 0.75  # of BM25, as Lucene has them
SCALE = 10_000  # scores are whole numbers: a small sorted set stores these in three bytes
LONGEST_TEXT = 100_000  # characters of a field; the rest is not searched
MOST_WORDS = 10_000  # of a document
BOUNDARY = "/"  # stands between fields: no text has this word, so no phrase goes from one field into the next
VERSION = 8  # characters at the beginning of a record


class Document(NamedTuple):
    """A document: its words in their order, how often each of them occurs, its values and its sorts.

    A word of a field with weight 3 counts as three, in its number and in the length (BM25F). ``values`` and ``sorts``
    have the ends of the names of their keys.
    """

    words: str
    counts: Mapping[str, float]
    length: int
    values: tuple[str, ...]
    sorts: Mapping[str, float]

    @classmethod
    def of(cls, values: Mapping[str, Any], fields: Iterable[Field], analyzer: Analyzer) -> "Document":
        """Return the document with these values of fields. Raises InvalidValue for a sort without an order."""
        counts, sorts = dict[str, float](), dict[str, float]()
        words, facets = list[str](), list[str]()
        length = 0.0
        for field in fields:
            value = values[field.name]
            if isinstance(field, Text):
                more = analyzer.words(field.clean(value)[:LONGEST_TEXT])[: max(0, MOST_WORDS - len(words))]
                for word in more:
                    counts[word] = counts.get(word, 0) + field.weight
                length += field.weight * len(more)
                words += [*more, BOUNDARY]
            elif isinstance(field, Facet):
                facets += [facet_end(field.name, each) for each in field.clean(value)]
            elif isinstance(field, Sort):
                sorts[sort_end(field.name)] = field.clean(value)
        return cls(" ".join(words), counts, round(length), tuple(facets), sorts)

    @property
    def record(self) -> str:
        """Return the record without its version. Only words stand between spaces, so phrases are found there alone."""
        rest = json.dumps([self.length, self.values, self.sorts], separators=(",", ":"))
        return f" {self.words} \n" + rest.replace(" ", "\\u0020")

    def impacts(self, average: float) -> dict[str, int]:
        """Return the score of each word before its rarity counts: the part of BM25 that depends on the document."""
        saturation = K1 * (1 - B + B * self.length / average)
        top = (K1 + 1) * SCALE
        scores = {count: round(top * count / (count + saturation)) for count in set(self.counts.values())}
        return {word: scores[count] for word, count in self.counts.items()}


def read_record(record: bytes | None) -> tuple[str, str, int, frozenset[str]]:
    """Return what a record holds: its version and the rest, the length, and the ends of the names of its keys."""
    if record is None:
        return "", "", 0, frozenset()
    text = record.decode()
    words, _, rest = text[VERSION:].partition("\n")
    length, values, sorts = json.loads(rest)
    return text[:VERSION], text[VERSION:], length, frozenset((*words.split(), *values, *sorts)) - {BOUNDARY}


def facet_end(name: str, value: str) -> str:
    """Return the end of the name of a value's key. No word begins with this mark."""
    return f"={name}={value}"


def sort_end(name: str) -> str:
    """Return the end of the name of a sort's key. No word begins with this mark."""
    return f"<{name}"
