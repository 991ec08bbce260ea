"""Fixtures of the tests of search."""

from datetime import timedelta

import pytest

from redis_kit.core.indexes import model_index
from redis_kit.search import Facet, SearchIndex, Sort, Text
from tests.app.models import Page


@pytest.fixture
def page_index(transactional_db, monkeypatch):
    """An index over pages, which no rebuild has filled yet."""
    monkeypatch.setattr(model_index, "_indexes", [])

    class PageIndex(SearchIndex):
        model = Page
        title = Text(weight=3)
        body = Text()
        tags = Facet()
        votes = Sort()
        published = Sort(half_life=timedelta(days=30))

    return PageIndex


@pytest.fixture
def pages(kit, page_index):
    """An index over pages on one server, rebuilt while there are none."""
    page_index.instance.rebuild()
    return page_index
