"""A lock that its holder takes again."""

import asyncio
import contextlib
import threading
from time import monotonic

import pytest
from django.db import transaction
from django.db.transaction import TransactionManagementError

from redis_kit.core.errors import InvalidValue, RedisUnavailable
from redis_kit.locks import AlreadyHeld, Lock, LockLost, NotHeld, locked
from tests.fixtures.servers import wait_for
from tests.locks.support.leases import holder


def again(name="a", **options):
    return Lock(name, reentrant=True, **options)


def in_thread(function):
    answers = []
    thread = threading.Thread(target=lambda: answers.append(function()))
    thread.start()
    thread.join(10)
    return answers[0]


def test_reentrant_lock_is_free_after_as_many_releases(kit, twin):
    lock = again()
    first, second = twin(lock.acquire), twin(lock.acquire)
    assert first is second
    twin(lock.release)
    assert twin(lock.locked)
    twin(lock.release)
    assert not twin(lock.locked)
    with pytest.raises(NotHeld):
        twin(lock.release)


def test_reentrant_lock_is_known_by_its_name_and_not_by_its_object(kit):
    with again() as outer, again() as inner:
        assert inner is outer
    assert not again().locked()


def test_second_time_costs_nothing(kit, commands):
    with again():
        with commands(kit) as sent, again():
            pass
        assert sent == []


def test_other_threads_and_tasks_are_kept_out_of_a_reentrant_lock(kit):
    async def other():
        return await again().aacquire(blocking=False)

    async def main():
        async with again():
            return await asyncio.create_task(other())

    with again():
        assert in_thread(lambda: again().acquire(blocking=False)) is None
    assert asyncio.run(main()) is None


def test_lock_that_is_not_reentrant_says_so(kit):
    lock = Lock("a")
    with lock, pytest.raises(AlreadyHeld):
        lock.acquire()


def test_reentrant_lock_that_was_lost_is_taken_anew(kit):
    lock = again(timeout=0.1)
    lost = lock.acquire()
    kit.client.delete(*kit.keys())
    lost.deadline = 0
    lease = lock.acquire(blocking=False)
    assert lease is not lost
    lease.release()
    with pytest.raises(LockLost):
        lost.release()


def lose(kit, lease):
    kit.client.delete(*kit.keys())
    lease.deadline = 0


def test_lost_outer_block_says_so_whatever_the_inner_one_did(kit):
    def hold():
        with again() as lost:
            lose(kit, lost)
            kept = again().acquire(blocking=False)
            again().acquire(blocking=False)
            again().release()
            leases.append(kept)

    def nest():
        with again() as lost:
            lose(kit, lost)
            with again():
                pass

    leases = []
    with pytest.raises(LockLost):
        hold()
    assert leases[0].held
    leases[0].release()
    with pytest.raises(LockLost):
        nest()


def test_lost_outer_async_block_says_so_whatever_the_inner_one_did(kit):
    async def nest():
        async with again() as lost:
            lose(kit, lost)
            async with again():
                pass

    with pytest.raises(LockLost):
        asyncio.run(nest())


def test_task_may_acquire_again_what_it_holds_and_its_children_may_not(kit):
    async def main():
        async with again() as outer, again() as inner:
            assert inner is outer
            async with asyncio.TaskGroup() as group:
                child = group.create_task(again().aacquire(blocking=False))
            assert child.result() is None
        assert not await again().alocked()

    asyncio.run(main())


def test_inner_block_with_a_longer_timeout_gets_it(kit, twin):
    outer = twin(again(timeout=0.5).acquire)
    inner = twin(again(timeout=60).acquire)
    assert inner is outer
    assert outer.deadline > monotonic() + 50
    assert 50_000 < kit.client.pttl(holder(kit)) <= 60_000
    twin(inner.extend)
    assert outer.deadline > monotonic() + 50
    twin(again(timeout=5).acquire)  # a shorter one takes nothing away
    assert outer.deadline > monotonic() + 50


def test_inner_block_has_most_of_its_timeout_before_it(kit, twin):
    lease = twin(again(timeout=10).acquire)
    twin(lease.extend, 8, replace_ttl=True)
    twin(again(timeout=10).acquire)
    assert lease.deadline > monotonic() + 9


def test_inner_block_acquires_anew_if_the_extension_finds_the_lease_lost(kit, twin):
    outer = twin(again(timeout=5).acquire)
    kit.client.delete(*kit.keys())
    inner = twin(again(timeout=60).acquire)
    assert inner is not outer
    assert (outer.lost, inner.held) == (True, True)
    twin(inner.release)
    with pytest.raises(LockLost):
        twin(outer.release)


def is_available():
    try:
        return not Lock("b").locked()
    except RedisUnavailable:
        return False


def test_inner_block_that_could_not_be_extended_was_not_acquired(own_kit, twin):
    outer = twin(again(timeout=5).acquire)
    own_kit.server.stop()
    with pytest.raises(RedisUnavailable):
        twin(again(timeout=60).acquire)
    own_kit.server.start()
    wait_for(is_available)
    with contextlib.suppress(LockLost):  # the server has forgotten it
        twin(outer.release)
    with pytest.raises(NotHeld):
        twin(outer.release)


def test_longer_timeout_of_an_inner_block_is_renewed(kit):
    with again(timeout=0.3, renew=True) as lease, again(timeout=60):
        assert lease.deadline > monotonic() + 50
    with again(timeout=60) as lease:
        assert lease.deadline > monotonic() + 50


@pytest.mark.parametrize(
    ("outer", "inner", "missing"),
    [
        ({}, {"renew": True}, "renew=True"),
        ({"renew": True, "max_hold": 60}, {"renew": True, "max_hold": 70}, "max_hold"),
        ({"renew": True, "max_hold": 60}, {"renew": True}, "max_hold"),
        ({"renew": True, "max_hold": 60}, {"timeout": 70}, "max_hold"),
        ({}, {"on_lost": print}, "on_lost"),
        ({"on_lost": repr}, {"on_lost": print}, "on_lost"),
        ({}, {"release": "on_commit"}, "release='on_commit'"),
        ({"renew": True}, {"release": "on_commit"}, "release='on_commit'"),
        ({"release": "on_commit"}, {"release": "on_commit", "database": "other"}, "database='other'"),
    ],
)
def test_inner_block_that_asks_for_what_the_outer_one_lacks_is_refused(kit, outer, inner, missing, monkeypatch):
    monkeypatch.setattr("redis_kit.locks.acquiring.reentrancy.check_database", lambda database: None)
    with again(**outer) as lease:
        with pytest.raises(AlreadyHeld, match=missing), again(**inner):
            pass
        assert lease.held
    assert not again().locked()


def test_inner_block_that_asks_for_less_gets_what_the_outer_one_has(kit):
    with again(renew=True, max_hold=60, on_lost=print), again(renew=True, max_hold=50, on_lost=print), again():
        pass
    assert not again().locked()


def test_inner_block_never_outlasts_max_hold(kit):
    with again(timeout=10, renew=True, max_hold=5) as lease:
        began = lease.acquired_at
        lease.extend(1, replace_ttl=True)
        with again(timeout=10, renew=True, max_hold=5):
            assert began + 4 < lease.deadline <= began + 5


def test_function_that_calls_itself_may_be_locked(kit):
    @locked("countdown", reentrant=True)
    def countdown(number):
        return countdown(number - 1) if number else Lock("countdown").locked()

    assert countdown(3)
    assert not Lock("countdown").locked()


def test_wrong_kind_of_reentrant_is_refused():
    with pytest.raises(InvalidValue, match="reentrant"):
        Lock("a", reentrant=1)


def kept(name="a", **options):
    return Lock(name, timeout=1, blocking_timeout=2, release="on_commit", **options)


@pytest.mark.django_db(transaction=True)
def test_lock_kept_for_the_transaction_may_be_taken_again_in_it(kit):
    with transaction.atomic():
        with kept() as first:
            pass
        with kept() as second:
            assert second is first
        assert Lock("a").locked()
        assert in_thread(lambda: Lock("a").acquire(blocking=False)) is None
    assert not Lock("a").locked()


@pytest.mark.django_db(transaction=True)
def test_lock_kept_for_the_transaction_was_released(kit):
    with transaction.atomic():
        lock = kept()
        lease = lock.acquire()
        lock.release()
        for call in (lock.release, lease.release):
            with pytest.raises(NotHeld):
                call()
        assert lease.held


@pytest.mark.django_db(transaction=True)
def test_lock_kept_for_the_transaction_may_be_taken_again_by_one_object(kit):
    lock = kept()
    with transaction.atomic():
        with kept() as first:
            pass
        for _ in range(3):
            with lock as lease:
                assert lease is first
    assert not Lock("a").locked()


@pytest.mark.django_db(transaction=True)
def test_transaction_without_an_end_that_django_tells_is_refused(kit):
    connection = transaction.get_connection()
    connection.ensure_connection()
    transaction.set_autocommit(False)
    try:
        with pytest.raises(TransactionManagementError, match="autocommit"):
            kept().acquire()
    finally:
        transaction.rollback()
        transaction.set_autocommit(True)
    assert not Lock("a").locked()
