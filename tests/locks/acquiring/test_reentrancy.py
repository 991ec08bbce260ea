"""A lock that its holder takes again."""

import asyncio
import threading

import pytest
from django.db import transaction
from django.db.transaction import TransactionManagementError

from redis_kit.core.errors import InvalidValue
from redis_kit.locks import AlreadyHeld, Lock, LockLost, NotHeld, locked


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
