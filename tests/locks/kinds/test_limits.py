"""A limit that an operator sets, while the semaphore is in use."""

import threading
from time import monotonic

import pytest

from redis_kit.core.errors import InvalidValue
from redis_kit.locks import LockNotAcquired, Semaphore
from tests.fixtures.servers import wait_for

BOTH = pytest.mark.parametrize("fair", [False, True])


@BOTH
def test_set_limit_counts_instead_of_those_in_the_code(kit, twin, fair):
    semaphore = Semaphore("a", 2, fair=fair)
    assert twin(semaphore.acquire)
    twin(semaphore.set_limit, 3)
    assert twin(semaphore.acquire, blocking=False)
    assert twin(Semaphore("a", 9, fair=fair).acquire, blocking=False)
    assert not twin(semaphore.acquire, blocking=False)
    twin(semaphore.set_limit, None)
    twin(semaphore.release)
    assert not twin(semaphore.acquire, blocking=False)


@BOTH
def test_lower_limit_takes_nothing_from_anybody(kit, twin, fair):
    semaphore = Semaphore("a", 3, fair=fair)
    leases = [twin(semaphore.acquire) for _ in range(3)]
    twin(semaphore.set_limit, 1)
    assert [twin(lease.extend, 5) for lease in leases] == [True] * 3
    with pytest.raises(LockNotAcquired, match="3 of 1 slots in use"), Semaphore("a", 3, blocking=False, fair=fair):
        pass
    for lease in leases[:2]:
        twin(lease.release)
        assert not twin(semaphore.acquire, blocking=False)
    twin(leases[2].release)
    assert twin(semaphore.acquire, blocking=False)
    assert not twin(semaphore.acquire, blocking=False)


@BOTH
def test_callers_that_wait_notice_a_higher_limit_within_a_second(kit, twin, waiting, fair):
    semaphore = Semaphore("a", 1, fair=fair)
    lease, woken = twin(semaphore.acquire), []

    def wait():
        with Semaphore("a", 1, fair=fair):
            woken.append(monotonic())

    thread = waiting(wait)
    began = monotonic()
    twin(semaphore.set_limit, 2)
    thread.join(10)
    assert woken[0] - began < 1.5
    twin(lease.release)


def test_limit_is_set_on_a_full_server(own_kit, twin):
    own_kit.server.client().config_set("maxmemory", 1)
    semaphore = Semaphore("a", 5)
    twin(semaphore.set_limit, 1)
    own_kit.server.client().config_set("maxmemory", 0)
    assert twin(semaphore.acquire, blocking=False)
    assert not twin(semaphore.acquire, blocking=False)


def test_limit_is_kept_while_nobody_holds_a_slot(kit, twin):
    twin(Semaphore("a", 5).set_limit, 1)
    assert [key for key in kit.keys() if kit.client.ttl(key) == -1] == [key for key in kit.keys() if ":limit" in key]
    with Semaphore("a", 5):
        assert not twin(Semaphore("a", 5).acquire, blocking=False)
    assert twin(Semaphore("a", 5).acquire)


@BOTH
def test_waiter_that_no_longer_fits_is_told(kit, waiting, fair):
    lease, errors = Semaphore("a", 3, fair=fair).acquire(), []

    def wait():
        try:
            Semaphore("a", 3, weight=3, fair=fair).acquire()
        except LockNotAcquired as error:
            errors.append(str(error))

    thread = waiting(wait)
    Semaphore("a", 3, fair=fair).set_limit(2)
    thread.join(10)
    assert "it can never acquire them" in errors[0]
    assert Semaphore("a", 3, fair=fair).acquire(blocking=False), "its ticket does not keep others out"
    lease.release()


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "3", 1_000_001])
def test_limit_out_of_range_is_refused(value):
    with pytest.raises(InvalidValue, match="number must be a whole number from 1 to 1,000,000"):
        Semaphore("a", 3).set_limit(value)


def test_something_else_in_the_place_of_the_limit_is_no_limit(kit):
    Semaphore("a", 5).set_limit(1)
    (key,) = kit.keys()
    kit.client.set(key, "many")
    assert Semaphore("a", 2).acquire(blocking=False)
    assert Semaphore("a", 2).acquire(blocking=False)
    assert not Semaphore("a", 2).acquire(blocking=False)


def test_setting_it_is_one_round_trip(kit, twin, commands):
    for _ in ("loads the script", "counts"):
        with commands(kit) as sent:
            twin(Semaphore("a", 5).set_limit, 3)
            twin(Semaphore("a", 5).used)
    assert sent == ["EVALSHA"] * 2


@BOTH
def test_limit_that_goes_up_and_down_is_never_exceeded(kit, fair):
    inside, most, done, guard, stop = 0, 0, 0, threading.Lock(), threading.Event()

    def work():
        nonlocal inside, most, done
        while not stop.is_set():
            with Semaphore("a", 3, fair=fair):
                with guard:
                    inside, done = inside + 1, done + 1
                    most = max(most, inside)
                with guard:
                    inside -= 1

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for number in (5, 2, 4, 1):
        Semaphore("a", 3, fair=fair).set_limit(number)
        wait_for(lambda number=number: Semaphore("a", 3).used() <= number)
        with guard:
            most, before = 0, done
        wait_for(lambda before=before: done > before + 30)
        assert most <= number
    stop.set()
    for thread in threads:
        thread.join(20)
    assert inside == 0
