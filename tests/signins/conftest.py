"""Somebody who signs in."""

import pytest

from redis_kit.core.logs.rate_limit import LogRateLimit
from redis_kit.signins import errors
from tests.signins.people import numbers, saved


@pytest.fixture(autouse=True)
def every_failure_is_logged(monkeypatch):
    monkeypatch.setattr(errors, "_log_limit", LogRateLimit())


@pytest.fixture
def user(kit):
    return saved(next(numbers))
