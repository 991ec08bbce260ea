"""The words of texts and of queries, in any script, and where the words of a query stand in a text."""

import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any

from django.utils.module_loading import import_string

from redis_kit.autocomplete.settings import AutocompleteSettings
from redis_kit.core import conf
from redis_kit.core.errors import InvalidValue
from redis_kit.core.text import shortened

LONGEST_QUERY = 64  # characters that are read
LONGEST, MOST = 128, 16  # characters and words of a text by which it is found
SPELLINGS = 8  # of a text
LONGEST_TEXT = 1000  # characters that are stored
ACCENTS = range(0x300, 0x370)  # the combining marks of Latin, Greek and Cyrillic; those of other scripts are letters


class _Table(dict[int, str | None]):
    """The replacement of a character: spaces and punctuation divide words, and what is invisible is left out."""

    def __missing__(self, code: int) -> str | None:
        category = unicodedata.category(chr(code))
        is_hidden = category in ("Cc", "Cf", "Cs") or code in ACCENTS
        self[code] = " " if chr(code).isspace() or category[0] in "PZ" else None if is_hidden else chr(code)
        return self[code]


_table = _Table()


def words(text: str) -> list[str]:
    """Return the words of a text, comparable: by NFKC, casefold and no accents. One of punctuation alone is a word."""
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    parts = unicodedata.normalize("NFC", plain.translate(_table)).split()
    visible = "" if parts else "".join(each for each in plain if unicodedata.category(each)[0] == "P")
    return [visible] if visible else parts


def query_words(query: str) -> list[str]:
    """Return the words of a query, the longest first. Only its first 64 characters count. Raises InvalidValue."""
    if not isinstance(query, str):
        raise InvalidValue(f"The text to search for must be a str, not {shortened(query)}.")
    return sorted(words(query[:LONGEST_QUERY]), key=len, reverse=True)


def spellings(text: str) -> list[str]:
    """Return the words of a text and those of its further spellings, with one space between the words of each."""
    path = conf.section(AutocompleteSettings).SPELLINGS
    others = import_string(path)(text) if path else ()
    every = [" ".join(words(each[: 4 * LONGEST])[:MOST])[:LONGEST].rstrip() for each in (text, *others)]
    return [*dict.fromkeys(filter(None, every))][:SPELLINGS] or ["\ufffd"]  # a text that nobody sees


def checked_text(text: Any) -> bytes:
    """Return a text as it is stored. Raises InvalidValue unless it has 1 to 1,000 characters."""
    if not isinstance(text, str) or not 1 <= len(text) <= LONGEST_TEXT:
        wrong = f"one of {len(text):,}" if isinstance(text, str) else shortened(text)
        raise InvalidValue(f"A text has 1 to {LONGEST_TEXT:,} characters, not {wrong}.")
    return text.encode("utf-8", "surrogatepass")


def spans(text: str, query: Sequence[str]) -> tuple[tuple[int, int], ...] | None:
    """Return the start and the end of each part of a text that a word of query_words() begins; None if one does not."""
    places, matches = list(_places(text)), []
    for word in query:
        place = next((place for place in places if place[2].startswith(word)), None)
        if place is None:
            return None
        places.remove(place)
        start, end, _whole = place
        matches.append((start, _end(text, start, end, word)))
    return tuple(sorted(matches))


def _places(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield where each word starts and ends in a text, and its comparable form."""
    start, is_empty = 0, True
    for end, character in enumerate(f"{text} "):
        if _table[ord(character)] == " ":
            for word in words(text[start:end]):
                is_empty = False
                yield start, end, word
            start = end + 1
    if is_empty:
        yield from ((0, len(text), word) for word in words(text))


def _end(text: str, start: int, end: int, word: str) -> int:
    """Return where the part of a word that matches ends: after as few characters as are enough, with their marks."""
    for place in range(start + 1, min(end, start + LONGEST)):
        if "".join(words(text[start:place])).startswith(word) and not unicodedata.combining(text[place]):
            return place
    return end
