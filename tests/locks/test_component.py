"""Locks as a component."""

from redis_kit.core.component import components
from redis_kit.locks import Lock


def test_leases_of_one_test_are_unknown_to_the_next(kit):
    lock = Lock("a", reentrant=True)
    assert lock.acquire() is Lock("a", reentrant=True).acquire()
    for component in components():
        component.forget()
    assert Lock("a", reentrant=True).acquire(blocking=False) is None
