"""At most so many holders at a time."""

import threading
from time import sleep

import pytest

from redis_kit.core.errors import InvalidValue, KeyConflict
from redis_kit.locks import Lock, LockLost, LockNotAcquired, NotHeld, Semaphore
from redis_kit.locks.inspection import contended, held_locks
from tests.fixtures.servers import wait_for


def used(name="a"):
    return sum(one.used for one in held_locks().semaphores if one.name == name)


def test_no_more_than_limit_slots_are_given(kit, twin):
    semaphore = Semaphore("a", 3)
    leases = [twin(semaphore.acquire, blocking=False) for _ in range(5)]
    assert [bool(lease) for lease in leases] == [True, True, True, False, False]
    assert used() == 3
    twin(semaphore.release)
    assert used() == 2
    assert twin(Semaphore("a", 3).acquire, blocking=False)


def test_reentrant_is_refused_as_each_lease_takes_a_slot():
    with pytest.raises(InvalidValue, match="A Semaphore can't be reentrant"):
        Semaphore("a", 2, reentrant=True)
    assert not Semaphore("a", 2, reentrant=False).reentrant


def test_with_waits_and_gives_back(kit):
    with Semaphore("a", 1) as lease:
        assert lease.held
        with pytest.raises(LockNotAcquired, match="1 of 1 slots in use"), Semaphore("a", 1, blocking_timeout=0.05):
            pass
    assert used() == 0


def test_one_thread_may_hold_several_slots(kit):
    semaphore = Semaphore("a", 2)
    with semaphore as outer:
        with semaphore as inner:
            assert outer.token != inner.token
            assert used() == 2
        assert outer.held
        assert not inner.held
    assert used() == 0


def test_lock_and_semaphore_of_one_name_are_two_things(kit):
    with Lock("a") as lease, Semaphore("a", 1):
        with pytest.raises(NotHeld):
            Semaphore("a", 1).release(lease)
        assert lease.held


def test_slot_of_a_dead_holder_comes_back_with_its_lease(kit, twin):
    assert twin(Semaphore("a", 1, timeout=0.2).acquire)
    assert twin(Semaphore("a", 1).acquire, blocking=False) is None
    assert twin(Semaphore("a", 1).acquire, blocking_timeout=5)
    assert used() == 1


def test_acquire_refresh_and_release_are_one_round_trip_each(kit, twin, commands):
    semaphore = Semaphore("a", 1)
    for _ in ("loads the scripts", "counts"):
        with commands(kit) as sent:
            twin(semaphore.acquire)
            twin(semaphore.extend, 5)
            twin(semaphore.release)
    assert sent == ["EVALSHA"] * 3


def test_refresh_makes_the_lease_longer(kit, twin):
    semaphore = Semaphore("a", 1, timeout=5)
    lease = twin(semaphore.acquire)
    assert twin(semaphore.extend, 60)
    assert 60 < held_locks().semaphores[0].ends_in <= 65
    assert twin(lease.extend, 1, replace_ttl=True)
    assert held_locks().semaphores[0].ends_in <= 1
    assert twin(semaphore.reacquire)
    assert 1 < held_locks().semaphores[0].ends_in <= 5


def test_lost_slot_is_not_taken_again_by_a_refresh(kit, twin):
    semaphore = Semaphore("a", 1, timeout=0.1)
    lease = twin(semaphore.acquire)
    wait_for(lambda: used() == 0)
    assert twin(Semaphore("a", 1).acquire, blocking=False)
    with pytest.raises(LockLost):
        twin(lease.extend, 10)
    assert used() == 1


def test_lost_slot_stays_lost_although_nobody_took_it(kit, twin):
    assert twin(Semaphore("a", 2, timeout=60).acquire)
    lease = twin(Semaphore("a", 2, timeout=0.1).acquire)
    wait_for(lambda: used() == 1)
    for attempt in (lease.extend, lease.release):
        with pytest.raises(LockLost):
            twin(attempt)
    assert used() == 1


def test_releasing_a_lost_slot_leaves_the_others_alone(kit, twin):
    lease = twin(Semaphore("a", 1, timeout=0.1).acquire)
    assert twin(Semaphore("a", 1).acquire, blocking_timeout=5)
    with pytest.raises(LockLost):
        twin(lease.release)
    with pytest.raises(LockLost):
        twin(lease.release)
    assert used() == 1


def test_smaller_of_two_limits_counts_while_it_is_in_use(kit):
    lease = Semaphore("a", 1, timeout=1).acquire()
    with pytest.raises(LockNotAcquired, match="3 here and 1 elsewhere"), Semaphore("a", 3, blocking=False):
        pass
    lease.release()
    large = Semaphore("a", 3)
    assert large.acquire()
    wait_for(lambda: large.acquire(blocking=False))
    assert large.acquire()
    assert large.acquire(blocking=False) is None


def test_longer_lease_keeps_its_limit_longer(kit):
    leases = [Semaphore("a", 2, timeout=timeout).acquire() for timeout in (60, 0.1)]
    wait_for(lambda: used() == 1)
    assert Semaphore("a", 9).acquire()
    assert Semaphore("a", 9).acquire(blocking=False) is None
    assert len(leases) == 2


def test_keys_go_with_the_last_slot(kit):
    semaphore = Semaphore("a", 2, timeout=30)
    with semaphore, semaphore:
        own = [key for key in sorted(kit.keys()) if not key.endswith("live")]
        assert len(own) == 3
        assert all(0 < kit.client.pttl(key) <= 30_000 for key in own)
    assert not [key for key in sorted(kit.keys()) if not key.endswith("live")]


@pytest.mark.parametrize("fair", [False, True])
def test_limits_are_stored_while_they_differ(kit, twin, fair):
    leases = [twin(Semaphore("a", 3, timeout=20, fair=fair).acquire) for _ in range(2)]
    assert not [key for key in kit.keys() if key.endswith(":limits")]
    leases.append(twin(Semaphore("a", 5, timeout=30, fair=fair).acquire))
    (key,) = (key for key in kit.keys() if key.endswith(":limits"))
    assert kit.client.zrange(key, 0, -1) == ["3", "5"]
    twin(leases[0].extend, 60, replace_ttl=True)
    assert kit.client.zrange(key, 0, -1) == ["5", "3"]
    assert 30_000 < kit.client.pttl(key) <= 60_000
    assert twin(Semaphore("a", 9, fair=fair).acquire, blocking=False) is None
    for lease in leases:
        twin(lease.release)
    assert [key.rpartition(":")[2] for key in kit.keys()] == ["live"]


@pytest.mark.parametrize("fair", [False, True])
def test_limit_of_a_lease_that_is_over_no_longer_counts(kit, twin, fair):
    twin(Semaphore("a", 9, timeout=0.1, fair=fair).acquire)
    longest = twin(Semaphore("a", 1, timeout=60, fair=fair).acquire, blocking_timeout=5)
    dead = twin(Semaphore("a", 1, timeout=0.1, fair=fair).acquire, blocking=False)
    assert dead is None
    twin(longest.release)
    assert [bool(twin(Semaphore("a", 2, fair=fair).acquire, blocking=False)) for _ in range(3)] == [True, True, False]


def test_racing_threads_never_exceed_the_limit(kit):
    semaphore, inside, most = Semaphore("a", 3), 0, 0
    counting = threading.Lock()

    def work():
        nonlocal inside, most
        for _ in range(15):
            with semaphore:
                with counting:
                    inside += 1
                    most = max(most, inside)
                used()
                with counting:
                    inside -= 1

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert most == 3
    assert inside == 0
    assert used() == 0


def test_key_of_another_type_is_reported_and_nothing_changed(kit, twin):
    with Semaphore("a", 1):
        key = next(key for key in sorted(kit.keys()) if key.endswith("holders"))
    kit.client.set(key, "something else")
    before = kit.keys()
    with pytest.raises(KeyConflict):
        twin(Semaphore("a", 1).acquire)
    assert kit.keys() == before


@pytest.mark.parametrize("options", [{}, {"fair": True}, {"within": Semaphore("all", 1)}])
def test_who_waited_is_counted_and_who_did_not_is_not(kit, waiting, options):
    lease = Semaphore("a", 1, **options).acquire()
    assert not contended()
    thread = waiting(lambda: Semaphore("a", 1, **options).acquire().release())
    sleep(0.06)  # waits that are shorter are counted by a sample
    lease.release()
    thread.join(10)
    (found,) = contended()
    assert (found.name, found.kind, found.waits) == ("a", "semaphore", 1)
    assert 0 < found.waited < 5
