"""An index over a model: what is found, in which order, and what happens while it can't answer."""

import pytest

from tests.app.models import Page


def titles(result):
    return [hit.row.title for hit in result]


def test_smoke(pages):
    first = Page.objects.create(title="Redis locks", body="A fair semaphore in Redis, and a lock.", tags=["db"], votes=3)
    second = Page.objects.create(title="Java locks", body="Redis is not here", tags=["db", "java"], votes=9)
    result = pages.search("redis lock", facets=("tags",))
    print(result, titles(result), result.facets, [h.snippets for h in result], result.explain(first.pk), result.scores)
    print(pages.search('"fair semaphore"').ids, pages.search("redis -java").ids, pages.search("", tags="java").ids)
    r = pages.search("redis", boost={"votes": 0.5})
    print(r.scores, r.explain(second.pk))
    print(pages.instance.info())
    first.delete()
    print(pages.search("redis lock", order="-votes").ids)
    assert 0
