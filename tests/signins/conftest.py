"""Somebody who signs in."""

import pytest

from redis_kit.core.logs.rate_limit import LogRateLimit
from redis_kit.signins import errors
from tests.signins.people import numbers, saved
from tests.signins.support.crowd import Crowd

_stored: dict = {}  # by the crowd's last day: the ends of keys, and what is in them


@pytest.fixture(autouse=True)
def every_failure_is_logged(monkeypatch):
    monkeypatch.setattr(errors, "_log_limit", LogRateLimit())


@pytest.fixture
def user(kit):
    return saved(next(numbers))


@pytest.fixture
def crowd(kit):
    """120 users. One test stores them through the kit; others get copies of its keys, which is much quicker."""
    found = Crowd(120, 20)
    if found.last not in _stored:
        found.sign_in()
        _stored[found.last] = [(key.removeprefix(kit.prefix), kit.raw.dump(key)) for key in kit.keys()]
    else:
        for key, content in _stored[found.last]:
            kit.raw.restore(kit.prefix + key, 0, content)
    return found
