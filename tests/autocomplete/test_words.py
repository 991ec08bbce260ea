"""Words of texts in many scripts, and where a query stands in a text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redis_kit.autocomplete.words import query_words, spans, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Anna Schmidt", ["anna", "schmidt"]),
        ("Müller-Lüdenscheidt, José", ["muller", "ludenscheidt", "jose"]),
        ("STRASSE Straße", ["strasse", "strasse"]),
        ("ﬁne Ⅷ １２", ["fine", "viii", "12"]),
        ("王小明", ["王小明"]),
        ("がか", ["がか"]),
        ("한글", ["한글"]),
        ("สมชาย ใจดี", ["สมชาย", "ใจดี"]),
        ("דָּוִד", ["דָּוִד"]),
        ("👩‍💻 C++", ["👩💻", "c++"]),
        ("a\0b\tc\ud800", ["ab", "c"]),
        ("...", ["..."]),
        (" \0 \u200b", []),
        ("", []),
    ],
)
def test_words_are_those_of_a_text_in_any_script(text, expected):
    assert words(text) == expected


@given(st.text())
def test_words_have_no_space_and_no_control_character(text):
    for word in words(text):
        assert word
        assert word.encode()
        assert not any(character < "!" for character in word)
        assert words(word) == [word]


@pytest.mark.parametrize(
    ("text", "query", "parts"),
    [
        ("Anna Schmidt", "schm a", ["A", "Schm"]),
        ("Zoë Müller", "mu", ["Mü"]),
        ("Zoe\u0308 X", "zoe", ["Zoe\u0308"]),
        ("Straße", "stras", ["Straß"]),
        ("an-na, anna", "anna an", ["an", "anna"]),
        ("ﷺ", "صلى", ["ﷺ"]),
        ("!? ...", "!", ["!"]),
    ],
)
def test_parts_of_the_text_are_named_in_the_original(text, query, parts):
    assert [text[start:end] for start, end in spans(text, query_words(query))] == parts


def test_text_that_does_not_match_has_no_parts():
    assert spans("Anna", ["b"]) is None
    assert spans("Anna", ["an", "an"]) is None
    assert spans("Anna", []) == ()
