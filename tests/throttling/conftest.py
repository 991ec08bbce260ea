"""Fixtures of the tests of throttling."""

import pytest

from redis_kit.throttling.throttles import registered


@pytest.fixture
def none_registered(registered_throttles):
    """No throttle is on pages or in lists, but those of the test."""
    registered.clear()
