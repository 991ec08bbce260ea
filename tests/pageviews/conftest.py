"""A site whose pages are counted."""

import pytest

from redis_kit.pageviews import batch
from redis_kit.pageviews.buffer import buffer


@pytest.fixture(autouse=True)
def empty_buffer():
    """Nothing waits or was logged from the test before, and nothing is left for the next."""
    buffer.reset()
    batch._logged.clear()
    yield buffer
    with buffer._sending:  # what its thread is sending belongs to this test
        buffer.reset()


@pytest.fixture
def no_thread(monkeypatch):
    """Nothing is sent but by flush()."""
    monkeypatch.setattr(buffer, "_start", lambda: None)


@pytest.fixture
def site(kit, settings):
    """The kit behind the routes of tests.pageviews.urls."""
    settings.ROOT_URLCONF = "tests.pageviews.urls"
    settings.MIDDLEWARE = ["redis_kit.pageviews.middleware.PageViewMiddleware", "tests.pageviews.urls.signed_in_as"]
    return kit
