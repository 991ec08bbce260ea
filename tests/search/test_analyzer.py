"""Words of texts in several languages."""

import pytest

from redis_kit.core.errors import ConfigurationError
from redis_kit.search import Analyzer, snowball
from redis_kit.search.analyzer import is_pair


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The lock's FENCE_token, v2.0", ["the", "lock", "s", "fence", "token", "v2", "0"]),
        ("Läßt Ёлка Ωμέγα İ", ["lasst", "елка", "ωμεγα", "i"]),
        ("Ｆｕｌｌ ｗｉｄｔｈ １２", ["full", "width", "12"]),
        ("Redis分布式锁v2", ["redis", "分布", "布式", "式锁", "v2"]),
        ("锁", ["锁"]),
        ("がく かく", ["がく", "かく"]),
        ("한국어 검색", ["한국", "국어", "검색"]),
        ("हिन्दी खोज", ["हिन्दी", "खोज"]),
        ("a\x00b\ud800c {}*", ["a", "b", "c"]),
        ("x" * 50, ["x" * 40]),
        ("", []),
    ],
)
def test_text_is_split(text, words):
    assert Analyzer().words(text) == words


def test_stop_words_are_left_out_and_stems_are_taken():
    analyzer = Analyzer(frozenset({"The", "not at"}), snowball("english"))
    assert analyzer.words("the semaphores are not locked at night") == ["semaphor", "are", "lock", "night"]
    with pytest.raises(ConfigurationError, match="no language 'klingon', but"):
        snowball("klingon")


def test_words_of_a_project_that_would_damage_records_are_left_out():
    class Rough(Analyzer):
        def split(self, text):
            return text.split(";")

    assert Rough().words("ok;a b;;/;=x;<y;c\nd;e\ud800") == ["ok"]
    assert Analyzer(stem=lambda word: word.rstrip("s")).words("locks s") == ["lock"]


def test_pair_is_two_characters():
    assert [is_pair(text) for text in ("文件", "文", "文件系", "ab", "文a")] == [True, False, False, False, False]
