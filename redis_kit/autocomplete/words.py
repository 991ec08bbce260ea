"""The words of texts and of queries, in any script, and where the words of a query stand in a text."""

import unicodedata
from collections.abc import Iterator, Sequence

from redis_kit.autocomplete.settings import AutocompleteSettings
from redis_kit.core import conf

LONGEST_QUERY = 64  # characters that are read
LONGEST, MOST = 128, 16  # characters and words of a text by which it is found
SPELLINGS = 8  # of a text
ACCENTS = range(0x300, 0x370)  # the combining marks of Latin, Greek and Cyrillic; those of other scripts are letters


class _Table(dict[int, str | None]):
    """What becomes of a character: spaces and punctuation divide words, and what is invisible is left out."""

    def __missing__(self, code: int) -> str | None:
        category = unicodedata.category(chr(code))
        if chr(code).isspace() or category[0] in "PZ":
            self[code] = " "
        elif category in ("Cc", "Cf", "Cs") or code in ACCENTS:
            self[code] = None
        else:
            self[code] = chr(code)
        return self[code]


_table = _Table()


def words(text: str) -> list[str]:
    """Return the words of a text in their comparable form: NFKC and casefold (Unicode, UAX 15), without accents.

    A text of punctuation alone is one word.
    """
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    found = unicodedata.normalize("NFC", plain.translate(_table)).split()
    if found or not plain:
        return found
    visible = "".join(character for character in plain if unicodedata.category(character)[0] == "P")
    return [visible] if visible else []


def query_words(query: str) -> list[str]:
    """Return the words of a query, the longest first. Only its first 64 characters count."""
    return sorted(words(query[:LONGEST_QUERY]), key=len, reverse=True)


def spellings(text: str) -> list[str]:
    """Return the words of a text and those of its further spellings, with one space between the words of each."""
    others = conf.section(AutocompleteSettings).load_spellings()(text)
    every = [" ".join(words(each[: 4 * LONGEST])[:MOST])[:LONGEST].rstrip() for each in (text, *others)]
    return [*dict.fromkeys(filter(None, every))][:SPELLINGS]


def spans(text: str, query: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """Return the start and the end of each part of a text that a word of a query matches; () for another spelling.

    The words of the query are given as query_words() returns them.
    """
    places, found = list(_places(text)), []
    for word in query:
        place = next((place for place in places if place[2].startswith(word)), None)
        if place is None:
            return ()
        places.remove(place)
        start, end, _whole = place
        found.append((start, _end(text, start, end, word)))
    return tuple(sorted(found))


def matches(text: str, query: Sequence[str]) -> bool:
    """Tell whether each word of a query begins a word of its own in a text."""
    left = words(text)
    for word in query:
        place = next((place for place, each in enumerate(left) if each.startswith(word)), None)
        if place is None:
            return False
        del left[place]
    return True


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
