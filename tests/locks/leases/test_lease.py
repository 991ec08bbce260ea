"""A lease: how it is extended and released, and when it has ended."""

import copy
import pickle
from datetime import timedelta

import pytest

from redis_kit.locks import Lock, LockLost, NotHeld
from tests.fixtures.servers import wait_for
from tests.locks.support.leases import key_ending


def test_held_turns_false_before_the_server_frees_the_lock(kit):
    lock = Lock("a", timeout=0.2)
    for _ in range(3):
        lease = lock.acquire()
        while True:
            locked = lock.locked()
            if not lease.held:
                break
            assert locked
        wait_for(lambda: not lock.locked())


def test_extending_adds_or_replaces(kit, twin):
    lock = Lock("a", timeout=10)
    lease = twin(lock.acquire)
    key = key_ending(kit, "holder")
    assert twin(lock.extend, 20) is True
    assert 29_000 < kit.client.pttl(key) <= 30_000
    assert twin(lock.extend, timedelta(seconds=5), replace_ttl=True)
    assert 4_000 < kit.client.pttl(key) <= 5_000
    assert twin(lock.reacquire)
    assert 9_000 < kit.client.pttl(key) <= 10_000
    assert twin(lease.extend)
    assert twin(lock.extend, 86_400)
    assert 86_390_000 < kit.client.pttl(key) <= 86_400_000
    assert lease.held


def test_extending_a_lease_that_ended_takes_nothing(kit, twin):
    lock = Lock("a")
    lease = twin(lock.acquire)
    kit.client.delete(*kit.keys())
    with pytest.raises(LockLost):
        twin(lease.extend, 10)
    assert not lease.held
    assert not twin(lock.locked)
    with pytest.raises(LockLost):
        twin(lease.release)


def test_releasing_a_lease_that_another_took_over_leaves_it_alone(kit, twin):
    lock, other = Lock("a"), Lock("a")
    twin(lock.acquire)
    kit.client.delete(*kit.keys())
    later = twin(other.acquire)
    with pytest.raises(LockLost):
        twin(lock.release)
    assert twin(other.owned)
    assert later.held


def test_extending_a_lease_that_another_took_over_leaves_it_alone(kit, twin):
    lease = twin(Lock("a", timeout=60).acquire)
    kit.client.delete(*kit.keys())
    later = twin(Lock("a", timeout=5).acquire)
    with pytest.raises(LockLost):
        twin(lease.extend)
    assert later.held
    assert kit.client.pttl(key_ending(kit, "holder")) <= 5_000


def test_release_without_a_lease_is_refused(kit, twin):
    lock = Lock("a")
    with pytest.raises(NotHeld):
        twin(lock.release)
    lease = twin(lock.acquire)
    twin(lock.release)
    with pytest.raises(NotHeld):
        twin(lock.release)
    with pytest.raises(NotHeld):
        twin(lease.release)
    twin(lock.acquire)
    with pytest.raises(NotHeld):
        twin(Lock("b").release, lock.acquire)


def test_lease_of_another_name_is_refused(kit, twin):
    lease = twin(Lock("a").acquire)
    with pytest.raises(NotHeld):
        twin(Lock("b").release, lease)
    assert lease.held


def test_error_of_the_block_is_not_hidden_by_that_of_the_release(kit):
    with pytest.raises(ZeroDivisionError), Lock("a"):
        raise ZeroDivisionError(kit.client.delete(*kit.keys()))


def test_block_that_outlived_its_lease_is_told(kit):
    with pytest.raises(LockLost), Lock("a"):
        kit.client.delete(*kit.keys())


def test_locks_and_leases_do_not_leave_the_process(kit):
    with Lock("a") as lease:
        for thing in (Lock("a"), lease):
            for leave in (pickle.dumps, copy.deepcopy):
                with pytest.raises(TypeError, match="can't leave its process"):
                    leave(thing)
