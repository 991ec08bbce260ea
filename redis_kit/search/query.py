"""The syntax of queries: ``redis +lock -java "fair semaphore"``. Any text can be read."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from redis_kit.search.analyzer import Analyzer, is_pair

LONGEST_QUERY = 300  # characters; the rest is ignored
MOST_WORDS = 16
FUZZY_LENGTH = 3  # shorter words are in one edit of too many others
_QUOTES = str.maketrans(dict.fromkeys("“”„‟«»「」『』", '"') | {"−": "-", "–": "-"})
_PARTS = re.compile(r'([+-]?)(?:"([^"]*)"?|(\S+))')


class Query(NamedTuple):
    """A query that was read: words that lift, words that must and must not occur, and phrases, each with its words."""

    optional: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    phrases: tuple[tuple[str, ...], ...] = ()
    excluded_phrases: tuple[tuple[str, ...], ...] = ()

    @property
    def positive(self) -> tuple[str, ...]:
        """Return the words that documents are found by."""
        return (*self.required, *self.optional)


def parse(text: str, analyzer: Analyzer) -> Query:
    """Return what a text asks for. It takes any text."""
    optional: list[str] = []
    required: list[str] = []
    excluded: list[str] = []
    phrases: dict[bool, list[tuple[str, ...]]] = {False: [], True: []}  # by whether they are excluded
    text = unicodedata.normalize("NFKC", text[:LONGEST_QUERY]).translate(_QUOTES)
    for sign, quoted, word in _PARTS.findall(text):
        words = tuple(analyzer.words(quoted or word))[:MOST_WORDS]
        if len(words) > 1 and (quoted or sign):
            phrases[sign == "-"].append(words)
            required += words if sign != "-" else ()
        elif quoted or sign:
            (excluded if sign == "-" else required).extend(words)
        else:
            optional += words
    must = _first(required)
    may = tuple(word for word in _first(optional) if word not in must)[: MOST_WORDS - len(must)]
    complete = [phrase for phrase in dict.fromkeys(phrases[False]) if set(phrase) <= set(must)]
    return Query(may, must, _first(excluded), tuple(complete), tuple(dict.fromkeys(phrases[True]))[:MOST_WORDS])


def edits(word: str) -> Iterator[str]:
    """Yield all words within one edit (P. Norvig: How to Write a Spelling Corrector), over the letters of its scripts.

    None for short words and for scripts without spaces.
    """
    if len(word) < FUZZY_LENGTH or is_pair(word[:2]):
        return
    blocks = {ord(letter) >> 7 for letter in word}  # of 128 code points
    points = map(chr, (point for block in sorted(blocks) for point in range(block << 7, (block + 1) << 7)))
    letters = [letter for letter in points if letter.isalnum() and not letter.isupper()]
    for at in range(len(word) + 1):
        head, tail = word[:at], word[at:]
        yield head + tail[1:]
        yield head + tail[1:2] + tail[:1] + tail[2:]
        for letter in letters:
            yield head + letter + tail
            yield head + letter + tail[1:]


def _first(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words))[:MOST_WORDS]
