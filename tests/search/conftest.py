"""Fixtures of the tests of search."""

import asyncio
from datetime import timedelta

import pytest

from redis_kit.core.indexes import model_index
from redis_kit.core.logs.rate_limit import LogRateLimit
from redis_kit.search import Facet, SearchIndex, Sort, Text, engine, index
from tests.app.models import Page


@pytest.fixture
def page_index(transactional_db, monkeypatch):
    """An index over pages, which no rebuild has filled yet."""
    monkeypatch.setattr(model_index, "_indexes", [])
    monkeypatch.setattr(index, "_log_limit", LogRateLimit())
    monkeypatch.setattr(engine, "SLOW", 9.0)  # as a busy machine is slow
    monkeypatch.setattr(engine, "_slow", {})

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


@pytest.fixture(params=["search", "asearch"])
def twin_search(request):
    """A function that calls one of the twins of an index."""

    def call(index, *args, **options):
        method = getattr(index, request.param)
        return asyncio.run(method(*args, **options)) if request.param == "asearch" else method(*args, **options)

    return call
