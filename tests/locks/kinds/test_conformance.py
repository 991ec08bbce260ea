"""The same on every kind of server."""

import threading

import pytest

from redis_kit.locks import FairLock, Lock, LockLost, MultiLock, ReadWriteLock, Semaphore
from redis_kit.locks.inspection import held_locks
from tests.fixtures.servers import wait_for

NAMES = [f"name {number}" for number in range(20)]


def test_lock_excludes_extends_and_is_lost(any_kit, twin):
    for name in NAMES[:8]:
        lock = Lock(name, timeout=30)
        lease = twin(lock.acquire)
        assert twin(Lock(name).acquire, blocking=False) is None
        assert twin(lock.owned)
        assert twin(lease.extend, 5)
        twin(lock.release)
        assert not twin(lock.locked)
        with pytest.raises(LockLost):
            _lose(any_kit, twin, lock)


def _lose(any_kit, twin, lock):
    twin(lock.acquire)
    for key in sorted(any_kit.keys()):
        any_kit.client.delete(key)
    twin(lock.release)


def test_semaphore_keeps_its_limit(any_kit, twin):
    for name in NAMES[:5]:
        semaphore = Semaphore(name, 2)
        leases = [twin(semaphore.acquire, blocking=False) for _ in range(3)]
        assert [bool(lease) for lease in leases] == [True, True, False]
        twin(leases[0].extend, 5)
        twin(leases[0].release)
        assert twin(semaphore.acquire, blocking=False)


def test_fair_lock_excludes_extends_and_is_lost(any_kit, twin):
    for name in NAMES[:5]:
        lock = FairLock(name, timeout=30)
        lease = twin(lock.acquire)
        assert twin(FairLock(name).acquire, blocking=False) is None
        assert twin(FairLock(name).acquire, blocking_timeout=0.02) is None
        assert twin(lock.owned)
        assert twin(lease.extend, 5)
        twin(lock.release)
        assert not twin(lock.locked)
        with pytest.raises(LockLost):
            _lose(any_kit, twin, lock)


def test_weights_levels_and_a_set_limit_count(any_kit, twin):
    for name in NAMES[:5]:
        outer = Semaphore(name, 4)
        taken = [twin(Semaphore("in it", 3, weight=2, within=outer).acquire, blocking=False) for _ in range(2)]
        assert [bool(lease) for lease in taken] == [True, False]
        assert twin(Semaphore(name, 4, weight=2).acquire, blocking=False)
        assert twin(outer.used) == 4
        twin(outer.set_limit, 5)
        assert twin(outer.acquire, blocking=False)
        assert not twin(outer.acquire, blocking=False)
        twin(taken[0].release)
        assert twin(outer.used) == 3


def test_fair_semaphore_keeps_its_limit(any_kit, twin):
    for name in NAMES[:5]:
        semaphore = Semaphore(name, 3, fair=True, weight=2)
        lease = twin(semaphore.acquire)
        assert not twin(semaphore.acquire, blocking_timeout=0.02)
        assert twin(Semaphore(name, 3, fair=True).acquire, blocking=False)
        twin(semaphore.set_limit, 5)
        assert twin(semaphore.acquire, blocking=False)
        twin(lease.extend, 5)
        twin(lease.release)
        assert twin(semaphore.used) == 3


def test_readers_share_and_writers_do_not(any_kit, twin):
    for name in NAMES[:5]:
        readers = [twin(ReadWriteLock(name).read.acquire) for _ in range(2)]
        assert not twin(ReadWriteLock(name).write.acquire, blocking=False)
        for lease in readers:
            twin(lease.release)
        assert twin(ReadWriteLock(name).write.acquire)
        assert not twin(ReadWriteLock(name).read.acquire, blocking=False)


def test_several_are_taken_or_none(any_kit, twin):
    multi = MultiLock(*NAMES)  # they are on all nodes
    for _ in range(2):
        leases = twin(multi.acquire)
        assert twin(leases.extend, 5)
        assert not twin(Lock(NAMES[7]).acquire, blocking=False)
        twin(leases.release)
    other = twin(Lock(NAMES[7]).acquire)
    assert twin(MultiLock(*NAMES).acquire, blocking=False) is None
    assert sorted(one.name for one in held_locks().locks) == [NAMES[7]]
    twin(other.release)


def test_those_who_wait_are_served_in_their_order(any_kit):
    lease, order = FairLock("a").acquire(), []

    def work(number):
        with FairLock("a"):
            order.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for count, thread in enumerate(threads, start=1):
        thread.start()
        wait_for(lambda count=count: len(_tickets(any_kit)) == count)
    lease.release()
    for thread in threads:
        thread.join(20)
    assert order == [0, 1, 2, 3]


def _tickets(any_kit):
    return [one for key in any_kit.keys() if key.endswith(":queue") for one in any_kit.client.zrange(key, 0, -1)]


def test_release_wakes_a_waiter(any_kit):
    for make in (
        lambda: Lock("a"),
        lambda: Semaphore("a", 1),
        lambda: Semaphore("a", 1, fair=True),
        lambda: Semaphore("a", 1, within=Semaphore("all", 1)),
        lambda: FairLock("a"),
        lambda: ReadWriteLock("a").write,
        lambda: MultiLock("a", "b"),
    ):
        inside, most = [], []

        def work(make=make, inside=inside, most=most):
            for _ in range(5):
                with make():
                    inside.append(1)
                    most.append(len(inside))
                    inside.pop()

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert most == [1] * 15


def test_everything_held_is_listed(any_kit):
    leases = [Lock(name).acquire() for name in NAMES] + [Semaphore("s", 2).acquire()]
    live = held_locks()
    assert sorted(one.name for one in live.locks) == sorted(NAMES)
    assert [(one.name, one.used) for one in live.semaphores] == [("s", 1)]
    for lease in leases:
        lease.release()
    assert held_locks() == ([], [], 0)
