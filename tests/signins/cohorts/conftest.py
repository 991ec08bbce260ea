"""A crowd that signed in."""

import pytest

from tests.signins.support.crowd import Crowd


@pytest.fixture
def crowd(kit):
    return Crowd(120, 20).sign_in()
