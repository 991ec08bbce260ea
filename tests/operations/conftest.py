"""Keys of several components."""

import pytest

from redis_kit.locks import Lock
from redis_kit.queues import Queue


def fill(kit):
    """Store keys of locks and of queues, and one of another program."""
    Lock("invoice:42", timeout=60).acquire(blocking=False)
    for number in range(20):
        Queue(f"queue {number}").put("a job" * 100)
    kit.client.set("another-program:session:secret", "x" * 100_000)


@pytest.fixture
def filled(own_kit):
    """The kit with keys of locks and queues."""
    fill(own_kit)
    return own_kit
