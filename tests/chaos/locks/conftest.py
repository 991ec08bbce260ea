"""Bugs that are put into the process of a test."""

import pytest

from tests.chaos.locks.support.bugs import Seeds


@pytest.fixture
def seeds():
    """What puts a bug into this process, and takes it out again."""
    found = Seeds()
    yield found
    found.sow("")
