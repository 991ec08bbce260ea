"""The syntax of queries, and the words within one edit."""

import pytest

from redis_kit.search.analyzer import Analyzer
from redis_kit.search.query import MOST_WORDS, Query, edits, parse


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("", Query()),
        ("Redis lock lock", Query(("redis", "lock"))),
        ("+redis lock redis", Query(("lock",), ("redis",))),
        ("-java --x ++y", Query((), ("y",), ("java", "x"))),
        ('"fair lock"', Query((), ("fair", "lock"), (), (("fair", "lock"),))),
        ('"lock"', Query((), ("lock",))),
        ('"open end', Query((), ("open", "end"), (), (("open", "end"),))),
        ('-"a b" c', Query(("c",), (), (), (), (("a", "b"),))),
        ("wi-fi", Query(("wi", "fi"))),
        ("+wi-fi", Query((), ("wi", "fi"), (), (("wi", "fi"),))),
        ("“fair lock” −java", Query((), ("fair", "lock"), ("java",), (("fair", "lock"),))),
        ("＋ｒｅｄｉｓ", Query((), ("redis",))),
        ("文件系统", Query(("文件", "件系", "系统"))),
        ("+文件系", Query((), ("文件", "件系"), (), (("文件", "件系"),))),
        ("+ - \" ' \x00 \ud800", Query()),
    ],
)
def test_query_is_read(text, query):
    assert parse(text, Analyzer()) == query


def test_long_query_is_cut():
    query = parse(" ".join(f"w{number}" for number in range(100)), Analyzer())
    assert len(query.optional) == MOST_WORDS
    query = parse('"' + " ".join(f"w{number}" for number in range(100)) + '"', Analyzer())
    assert len(query.phrases[0]) == len(query.required) == MOST_WORDS
    assert parse("x" * 10**6, Analyzer()).optional == ("x" * 40,)


def test_edits_are_those_of_one_key():
    found = set(edits("lock"))
    assert {"lok", "lokc", "locks", "luck", "block"} <= found
    assert found.isdisjoint({"lo", "clocks", "LOCK"})
    assert "замок" in set(edits("замак"))
    assert list(edits("ab")) == list(edits("文件系统")) == []
