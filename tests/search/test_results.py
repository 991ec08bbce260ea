"""Snippets: where they begin and end, what is marked, and that they are safe."""

import pytest

from redis_kit.search.analyzer import Analyzer
from redis_kit.search.results import snippet


@pytest.mark.parametrize(
    ("text", "words", "html"),
    [
        ("a fair lock", {"lock"}, "a fair <mark>lock</mark>"),
        ("<b>lock</b> & 'key'", {"lock"}, "&lt;b&gt;<mark>lock</mark>&lt;/b&gt; &amp; &#x27;key&#x27;"),
        ("nothing", {"lock"}, "nothing"),
        ("", {"lock"}, ""),
        ("LÖCK", {"lock"}, "<mark>LÖCK</mark>"),
        ("用文件系统实现的锁", {"文件", "件系", "系统", "的锁"}, "用<mark>文件系统</mark>实现<mark>的锁</mark>"),
        ("锁 x", {"锁"}, "<mark>锁</mark> x"),
        ("redis文件", {"文件", "redis"}, "<mark>redis</mark><mark>文件</mark>"),
    ],
)
def test_words_are_marked(text, words, html):
    assert snippet(text, frozenset(words), Analyzer()) == html


def test_long_text_is_cut_around_the_first_word_between_words():
    text = "begin " * 50 + "lock " + "end " * 100
    html = snippet(text, frozenset({"lock"}), Analyzer())
    assert html.startswith("…begin begin")
    assert html.endswith("end end…")
    assert "<mark>lock</mark>" in html
    assert len(html) < 200
    assert len(snippet("x" * 10**6, frozenset({"lock"}), Analyzer())) == 161
