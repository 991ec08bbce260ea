"""Somebody who signs in."""

import pytest

from tests.signins.people import numbers, saved


@pytest.fixture
def user(kit):
    return saved(next(numbers))
