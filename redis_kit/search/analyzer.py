"""From text to words: without case and accents, with pairs of characters for Chinese, Japanese and Korean."""

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import pairwise

LONGEST_WORD = 40  # characters; what is longer is cut
# Scripts without spaces, and Korean, whose words take endings.
CJK = "\u3005\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
# Vowels and other marks that belong to a word, though Python does not count them as letters.
MARKS = "\u0300-\u036f\u0591-\u05c7\u0610-\u065f\u0670\u0900-\u0903\u093a-\u094f\u0980-\u0df3\u0e31-\u0e4e\u200d"
_ASCII = re.compile(r"[a-z0-9]+")
_RUNS = re.compile(rf"([{CJK}]+)|((?:(?![{CJK}])[^\W_])(?:(?![{CJK}])[^\W_]|[{MARKS}])*)")
_PAIR = re.compile(f"[{CJK}]{{2}}")
_WORD = re.compile("[^\\W_][^\\s\ud800-\udfff]*")  # of a project's code: others would damage records and keys
_ACCENTS = re.compile("[\u0300-\u036f]")


class Analyzer:
    """Turns texts into words. ``stem`` maps a word to its stem; ``stop_words`` are left out.

    A subclass may replace ``split()``, as for Thai, or to cut Chinese by a dictionary.
    """

    def __init__(self, stop_words: frozenset[str] = frozenset(), stem: Callable[[str], str] | None = None) -> None:
        self.stop_words = frozenset(word for text in stop_words for word in self.split(text))
        self.stem = lru_cache(maxsize=50_000)(stem) if stem else None
        self._is_plain = stem is None and type(self).split is Analyzer.split

    def words(self, text: str) -> list[str]:
        """Return the words of a text, in their order."""
        words = self.split(text)
        if self.stop_words:
            words = [word for word in words if word not in self.stop_words]
        if self._is_plain:
            return words
        stems = map(self.stem, words) if self.stem else words
        return [word[:LONGEST_WORD] for word in stems if _WORD.fullmatch(word)]

    def split(self, text: str) -> list[str]:
        """Return the words of a text before stop words are left out and stems are taken."""
        if text.isascii():
            words = _ASCII.findall(text.lower())
        else:
            words = []
            for run, word in _RUNS.findall(normalized(text)):
                if len(run) > 1:
                    words += map("".join, pairwise(run))
                else:
                    words.append(run or word)
        return words if len(text) <= LONGEST_WORD else [word[:LONGEST_WORD] for word in words]


def normalized(text: str) -> str:
    """Return text without case, width and accents of European letters."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", text).casefold()
    return unicodedata.normalize("NFKC", _ACCENTS.sub("", plain))


def is_pair(word: str) -> bool:
    """Tell whether a word is a pair of characters of a script without spaces."""
    return bool(_PAIR.fullmatch(word))


def runs(text: str) -> Iterator[tuple[int, int]]:
    """Yield where words, and runs of a script without spaces, begin and end in a text as it is written."""
    return (match.span() for match in _RUNS.finditer(text))
