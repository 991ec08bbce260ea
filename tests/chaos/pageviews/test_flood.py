"""Hostile requests mint a bounded number of keys, and Redis holds nothing of their sender."""

import pytest

from redis_kit.pageviews import PageViews, batch
from redis_kit.pageviews.buffer import buffer
from tests.chaos.pageviews import flood

REQUESTS, SEED = 1200, 7


@pytest.fixture
def flooded(own_kit, settings, monkeypatch):
    """The kit after the flood, on a server of its own."""
    monkeypatch.setattr(batch, "_admitted", {})
    settings.ROOT_URLCONF = "tests.chaos.pageviews.flood"
    settings.MIDDLEWARE = ["redis_kit.pageviews.middleware.PageViewMiddleware"]
    own_kit.options(PAGEVIEWS={"MAX_PAGES": flood.MAX_PAGES})
    buffer.reset()
    assert flood.send(REQUESTS, SEED) > REQUESTS / 2
    yield own_kit
    buffer.reset()


def test_flood_mints_a_bounded_number_of_keys_and_leaves_no_trace(flooded):
    assert len(flooded.keys()) <= flood.most_keys()
    top = dict(PageViews("article").top(1000))
    assert len(top) == flood.MAX_PAGES - 3 + 1
    assert top["(other)"] > 10
    assert flood.traces(flooded.server) == []


def test_search_for_traces_finds_an_address_that_is_stored(flooded):
    PageViews("article", "from 203.0.113.9").add()
    flooded.client.set("visitor", "203.0.113.9")
    assert flood.traces(flooded.server) == ["203.0.113."]
