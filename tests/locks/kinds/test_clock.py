"""The server's clock is put forward or back while locks are held: nothing crashes, and fences go on growing."""

from random import Random
from time import monotonic

import pytest

from redis_kit.core import connections
from redis_kit.locks import Lock, LockLost
from redis_kit.locks.acquiring.wait import Attempt
from redis_kit.locks.inspection import force_release
from tests.chaos.locks.support.kinds import KINDS, make_lock
from tests.fixtures.servers import wait_for

pytestmark = pytest.mark.alone(4)

AHEAD, BACK = 3600, -7200  # seconds


@pytest.fixture(autouse=True)
def kit(clock_kit):
    """The kit on a server whose clock is set by a file."""
    return clock_kit


def all_of(kind):
    """Take all there is, and return the leases."""
    chance = Random(1)
    ask = iter(lambda: make_lock(f"{kind}:a", chance, timeout=30).lock.acquire(blocking=False), None)
    return list(ask)


@pytest.mark.parametrize("kind", KINDS)
def test_leases_end_when_the_clock_is_put_forward_and_holders_are_told(jump, kind):
    before = all_of(kind)
    jump(AHEAD)
    after = all_of(kind)
    assert len(after) == len(before)
    assert min(lease.fence for lease in after) > max(lease.fence for lease in before)
    for lease in before:
        with pytest.raises(LockLost):
            lease.extend()
    for lease in after:
        lease.release()


@pytest.mark.parametrize("kind", KINDS)
def test_holders_go_on_when_the_clock_is_put_back_and_fences_grow(jump, kind):
    before = all_of(kind)
    jump(BACK)
    assert not all_of(kind)
    for lease in before:
        assert lease.extend()
        lease.release()
    after = all_of(kind)
    assert len(after) == len(before)
    assert min(lease.fence for lease in after) > max(lease.fence for lease in before)


def test_waiter_comes_in_when_the_clock_is_put_forward(jump, waiting):
    held, taken = Lock("a", timeout=30).acquire(), []
    thread = waiting(lambda: taken.append(Lock("a").acquire(blocking_timeout=10)))
    jump(AHEAD)
    began = monotonic()
    thread.join(10)
    assert taken[0].fence > held.fence
    assert monotonic() - began < 8  # and not when its time limit of 10 s is over


def test_renewal_notices_that_the_clock_was_put_forward(jump):
    lost = []
    lease = Lock("a", timeout=0.6, renew=True, on_lost=lost.append).acquire()
    jump(AHEAD)
    wait_for(lambda: lost == [lease], timeout=2)
    assert not lease.held


def test_dead_holder_of_before_the_clock_was_put_back_can_be_removed(jump):
    Lock("a", timeout=0.1).acquire()
    jump(BACK)
    assert Lock("a").acquire(blocking_timeout=0.3) is None
    assert force_release("a")
    assert Lock("a").acquire(blocking=False)


def test_attempt_that_asks_again_does_not_set_fences_back(jump):
    client = connections.client()
    lock = Lock("a", timeout=30)
    other = next(one for one in map(Lock, "bcdefghijklmnopqrstuvwxyz0123456789") if one.tag() == lock.tag())
    attempt = Attempt(30, wait=0)
    fence = attempt.request(lock).run(client)
    jump(BACK)
    with other.acquire(blocking=False) as before:
        assert before.fence > fence
    assert attempt.request(lock).run(client) == fence
    assert other.acquire(blocking=False).fence > before.fence
