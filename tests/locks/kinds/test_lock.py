"""One holder at a time, for a limited time."""

import asyncio
import threading

import pytest
import redis.exceptions

from redis_kit.core.errors import KeyConflict, RedisKitError
from redis_kit.locks import AlreadyHeld, Lock, LockLost, LockNotAcquired, NotHeld
from redis_kit.locks.inspection import find
from tests.fixtures.servers import wait_for
from tests.locks.support.leases import key_ending

NAMES = ["a:b", "{x}", "a}b{c", "%3A", "a b", "*", "nul\0", "\r\n", "é", "e\u0301", "日本", "x" * 512]


def test_second_holder_is_refused_until_the_first_releases(kit, twin):
    first, second = Lock("a"), Lock("a")
    lease = twin(first.acquire)
    assert lease
    assert lease.name == "a"
    assert lease.held
    assert twin(second.acquire, blocking=False) is None
    assert twin(first.locked)
    twin(first.release)
    assert not lease.held
    assert not twin(first.locked)
    assert twin(second.acquire, blocking=False)


def test_with_holds_the_lock(kit):
    with Lock("a") as lease:
        assert lease.held
        assert Lock("a").locked()
    assert not Lock("a").locked()


def test_async_with_holds_the_lock(kit):
    async def main():
        async with Lock("a") as lease:
            assert lease.held
            assert await Lock("a").alocked()
        assert not await Lock("a").alocked()

    asyncio.run(main())


def test_lease_that_is_not_given_back_ends_by_itself(kit, twin):
    lease = twin(Lock("a", timeout=0.2).acquire)
    assert wait_for(lambda: twin(Lock("a").acquire, blocking=False), timeout=5)
    assert not lease.held


def test_names_do_not_collide(kit):
    leases = [Lock(name).acquire(blocking=False) for name in NAMES]
    assert all(leases)
    assert len({lease.fence for lease in leases}) == len(NAMES)


def test_acquire_and_release_are_one_round_trip_each(kit, twin, commands):
    lock = Lock("a")
    for _ in ("loads the scripts", "counts"):
        with commands(kit) as sent:
            twin(lock.acquire)
            twin(lock.extend, 5)
            twin(lock.reacquire)
            twin(lock.release)
    assert sent == ["EVALSHA"] * 4


def test_every_key_but_index_and_fence_goes_with_the_lock(kit):
    with Lock("a"):
        keys = kit.keys()
        assert [key.partition("}:")[2] for key in keys] == ["live", "lock:a:holder"]
        assert kit.client.ttl(keys[1]) > 0
        assert kit.client.zrange(keys[0], 0, -1) == ["lock:a", "fence"]
    assert kit.keys() == keys[:1]
    assert kit.client.zrange(keys[0], 0, -1) == ["fence"]


def test_fence_grows_even_when_all_data_are_lost(kit):
    fences = []
    for turn in range(30):
        with Lock("a") as lease:
            fences.append(lease.fence)
        if turn % 10 == 9:
            kit.client.flushall()
    assert fences == sorted(set(fences))


def test_fence_grows_although_the_clock_goes_back(kit):
    with Lock("a") as lease:
        key = key_ending(kit, "live")
        ahead = lease.fence + 3_600_000_000
        kit.client.zadd(key, {"fence": ahead})
    for number in range(1, 4):
        with Lock("a") as later:
            assert later.fence == ahead + number
            assert find("a")[0].fence == later.fence
            assert find("a")[0].held_for < 10
        with pytest.raises(LockNotAcquired, match=r"for \d\.\d s"), Lock("a"), Lock("a", blocking=False):
            pass
        ahead += 1


def test_waiting_for_oneself_is_refused(kit, twin):
    lock = Lock("a")
    twin(lock.acquire)
    with pytest.raises(AlreadyHeld):
        twin(lock.acquire)
    assert twin(lock.acquire, blocking=False) is None
    twin(lock.release)
    assert twin(lock.acquire)


def test_refusal_names_the_holder(kit):
    with Lock("a", timeout=10), pytest.raises(LockNotAcquired) as caught, Lock("a", blocking=False):
        pass
    assert threading.current_thread().name in caught.value.holder
    assert "lease ends in" in str(caught.value)
    assert caught.value.lock_name == "a"


def test_refusal_does_not_tell_the_token(kit):
    with Lock("a") as lease, pytest.raises(LockNotAcquired) as caught, Lock("a", blocking=False):
        pass
    assert lease.token not in str(caught.value)
    assert lease.token not in repr(lease)


def test_errors_are_those_of_the_client_library_too():
    assert issubclass(LockNotAcquired, redis.exceptions.LockError)
    assert issubclass(LockLost, redis.exceptions.LockNotOwnedError)
    assert issubclass(NotHeld, redis.exceptions.LockNotOwnedError)
    assert issubclass(AlreadyHeld, redis.exceptions.LockError)
    assert all(issubclass(kind, RedisKitError) for kind in (LockNotAcquired, LockLost, NotHeld, AlreadyHeld))


def test_key_of_another_type_is_reported_and_nothing_changed(kit, twin):
    with Lock("a"):
        key = key_ending(kit, "holder")
    kit.client.rpush(key, "something else")
    before = kit.keys()
    with pytest.raises(KeyConflict):
        twin(Lock("a").acquire)
    assert kit.keys() == before


@pytest.mark.parametrize("again", [False, True], ids=["free", "held"])
def test_index_of_another_type_is_reported_and_nothing_changed(kit, twin, again):
    lease = Lock("a").acquire()
    key, holder = key_ending(kit, "live"), key_ending(kit, "holder")
    if not again:
        lease.release()
    kit.client.delete(key)
    kit.client.rpush(key, "something else")
    before = kit.keys(), kit.client.get(holder)
    with pytest.raises(KeyConflict, match="live' is a list in place of a zset"):
        twin(Lock("a").acquire, blocking=False)
    assert (kit.keys(), kit.client.get(holder)) == before


def test_foreign_value_counts_as_taken(kit, twin):
    with Lock("a"):
        key = key_ending(kit, "holder")
    kit.client.set(key, "something else")
    assert twin(Lock("a").acquire, blocking=False) is None
    assert twin(Lock("a").acquire, blocking_timeout=0.01) is None


def test_closed_policy_counts_an_unreachable_lock_as_taken(kit, twin):
    kit.connect({"URL": "redis://127.0.0.1:1/0"}, LOCKS={"ON_FAILURE": "closed"})
    assert twin(Lock("a").acquire) is None
    assert twin(Lock("a").locked) is True
    with pytest.raises(LockNotAcquired), Lock("a"):
        pass
