"""The ranking beside exact BM25, common words, facets of many values, and the bounds of a query."""

import random
from pathlib import Path
from statistics import median

import pytest

from benchmarks.support.search.reference import Reference, spearman
from redis_kit.search import Facet, SearchIndex, Sort, Text
from tests.app.models import Page

TEXTS = Path(__file__).parent / "support" / "texts.tsv"  # of Debian's packages, manual pages and translations


@pytest.fixture
def texts(kit, page_index):
    """An index over 399 real texts, English and Chinese."""
    rows = [line.split("\t") for line in TEXTS.read_text().splitlines()]
    Page.objects.bulk_create(Page(title=title, body=body, tags=[kind]) for title, body, kind in rows)
    page_index.instance.rebuild()
    return page_index


def test_ranking_is_that_of_bm25(texts):
    index, chance = texts.instance, random.Random(7)
    documents = {str(row.pk): index.document(row) for row in Page.objects.all()}
    reference, ranks = Reference(documents), []
    for document in chance.sample(list(documents.values()), 60):
        words = [word for word in document.words.split() if word != "/"]
        query = " ".join(chance.sample(words, min(3, len(words))))
        exact = reference.scores(query.split())
        scores = texts.search(query, limit=1000).scores
        assert scores.keys() == exact.keys()
        ranks.append(spearman(list(scores.values()), [exact[id] for id in scores]))
    assert min(ranks) > 0.9
    assert median(ranks) > 0.99


def test_common_word_finds_nothing_beside_a_rarer_one(kit, page_index, monkeypatch):
    Page.objects.bulk_create([Page(title="the") for _ in range(1001)])
    Page.objects.bulk_create([Page(title="the rare"), Page(title="rare"), Page(title="of"), Page(title="the of")])
    page_index.instance.rebuild()
    first, second, third, fourth = Page.objects.order_by("-pk")[:4][::-1]
    assert sorted(page_index.search("the rare").ids) == [first.pk, second.pk]
    assert page_index.search("the").total == 1003
    assert page_index.search("the -rare").total == 1002
    assert page_index.search("+the rare", limit=1).ids == [first.pk]
    assert sorted(page_index.search("of the").ids) == [third.pk, fourth.pk]
    assert page_index.search("the unheard").total == 1003
    assert sorted(page_index.search("of unheard the").ids) == [third.pk, fourth.pk]
    assert page_index.search("unheard never").total == 0
    assert len(page_index.search("the", limit=1000, offset=990)) == 10  # 1,000 hits are stored


def test_most_frequent_values_are_counted(kit, page_index):
    Page.objects.bulk_create([Page(title="a", tags=[f"tag {number}"]) for number in range(250)])
    Page.objects.bulk_create([Page(title="a", tags=["tag 249", "tag 248"]) for _ in range(5)])
    page_index.instance.rebuild()
    counts = page_index.search("a", facets=("tags",)).facets["tags"]
    assert len(counts) == 200
    assert list(counts.items())[:2] == [("tag 248", 6), ("tag 249", 6)]


@pytest.mark.parametrize("nothing", [[], (), {None}, [""], Page.objects.none()])
def test_filter_by_no_value_finds_nothing(kit, page_index, nothing):
    Page.objects.bulk_create([Page(title="a", tags=["new"]), Page(title="a")])
    page_index.instance.rebuild()
    for text in ("", "a"):
        result = page_index.search(text, tags=nothing, facets=("tags",))
        assert (result.total, result.ids, result.facets["tags"]) == (0, [], {})
    assert page_index.search("a", tags=None).total == page_index.search("a", tags="").total == 2


def test_sorts_take_dates_and_none(kit, page_index):
    class Sorted(SearchIndex):
        model = Page
        title = Text()
        number = Sort("votes")
        when = Sort("published")
        kind = Facet("tags")

    Sorted.instance.rebuild()
    Page.objects.create(pk=1, title="a", votes=-5, tags=None or [])
    Page.objects.create(pk=2, title="a", votes=5, published="1969-07-20T20:17:00Z")
    Page.objects.create(pk=3, title="a", votes=0, published="2026-01-01T00:00:00Z")
    assert Sorted.search("a", order="number").ids == [1, 3, 2]
    assert Sorted.search("a", order="-when").ids == [3, 1, 2]
    result = Sorted.search("a", boost={"when": 0.5, "number": 0.5})
    assert result.ids[0] == 3
    assert all(0 <= score <= 1 for score in result.scores.values())
    assert Sorted.search("", kind="none").ids == []
