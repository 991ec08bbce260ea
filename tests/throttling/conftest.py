"""Fixtures of the tests of throttling."""

import pytest

from redis_kit.throttling.throttles.throttle import registry


@pytest.fixture
def none_registered(monkeypatch):
    """No throttle is on pages or in lists, but those of the test."""
    monkeypatch.setattr(registry, "_throttles", {})
