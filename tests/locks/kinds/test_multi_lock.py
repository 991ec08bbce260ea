"""All of several locks, or none."""

import asyncio
import random
import threading
from time import monotonic

import pytest

from redis_kit.core.errors import InvalidName, InvalidValue, KeyConflict, RedisUnavailable
from redis_kit.locks import (
    AlreadyHeld,
    FairLock,
    LeaseGroup,
    Lock,
    LockLost,
    LockNotAcquired,
    MultiLock,
    NotHeld,
    ReadWriteLock,
    Semaphore,
)
from redis_kit.locks.inspection import held_locks
from tests.fixtures.servers import wait_for
from tests.locks.support.leases import told

NAMES = [f"name {number}" for number in range(6)]  # in different buckets


def held():
    return sorted(one.name for one in held_locks().locks)


def in_order(names):
    """Return names as a MultiLock asks for them."""
    return [lock.name for lock in MultiLock(*names)._in_order]


def test_all_are_taken_and_given_back_in_one_round_trip_each(kit, twin, commands):
    multi = MultiLock(*NAMES)
    for _ in ("loads the scripts", "counts"):
        with commands(kit) as sent:
            leases = twin(multi.acquire)
            twin(leases.extend, 60)
            twin(multi.release)
    assert sent == ["EVALSHA"] * 6 * 3
    assert not held()


def test_leases_are_in_the_order_in_which_they_were_named(kit, twin):
    names = [*reversed(NAMES)]
    leases = twin(MultiLock(*names).acquire)
    assert [lease.name for lease in leases.leases] == names
    assert leases.held
    assert held() == NAMES


def test_with_and_async_with(kit):
    with MultiLock("a", "b") as leases:
        assert held() == ["a", "b"]
        assert not Lock("b").acquire(blocking=False)
    assert not leases.held

    async def main():
        async with MultiLock("b", "a") as leases:
            assert leases.held
            with pytest.raises(LockNotAcquired, match="<Lock 'a'> is held by"):
                async with MultiLock("a", blocking=False):
                    pass

    asyncio.run(main())
    assert not held()


def test_one_that_is_taken_leaves_all_free(kit, twin):
    for name in NAMES:
        lease = Lock(name).acquire()
        assert twin(MultiLock(*NAMES).acquire, blocking=False) is None
        assert held() == [name]
        lease.release()


def test_all_kinds_go_together(kit, twin):
    def make(**options):
        semaphore = Semaphore("s", 2, weight=2, within=Semaphore("all", 3))
        return MultiLock("a", Lock("b"), semaphore, FairLock("f"), ReadWriteLock("rw").read, **options)

    leases = twin(make().acquire)
    assert len(leases.leases) == 5
    for taken in (Lock("a"), Semaphore("s", 2, within=Semaphore("all", 3)), FairLock("f"), ReadWriteLock("rw").write):
        assert not twin(taken.acquire, blocking=False)
    assert not twin(make(blocking=False).acquire)
    twin(leases.release)
    assert twin(make(blocking=False).acquire)


def test_it_waits_for_the_one_that_is_taken(kit, waiting, twin):
    for name in NAMES:
        lease, entered = Lock(name).acquire(), []

        def wait(entered=entered):
            with MultiLock(*NAMES):
                entered.append(monotonic())

        thread = waiting(wait)
        began = monotonic()
        lease.release()
        thread.join(10)
        assert entered[0] - began < 0.5
    assert not held()


def test_what_comes_after_the_one_it_waits_for_is_free_for_others(kit, waiting):
    names = in_order(NAMES)
    lease = Lock(names[2]).acquire()
    thread = waiting(lambda: MultiLock(*NAMES).acquire().release())
    assert held() == sorted(names[:3])
    others = MultiLock(*names[3:]).acquire(blocking=False)
    lease.release()
    wait_for(lambda: set(names[:3]) <= set(held()))
    others.release()
    thread.join(10)
    assert not thread.is_alive()
    assert not held()


def test_one_time_limit_for_all(kit, twin):
    names = in_order(NAMES)
    leases = [Lock(names[0], timeout=0.4).acquire(), Lock(names[3]).acquire()]
    began = monotonic()
    assert twin(MultiLock(*NAMES).acquire, blocking_timeout=0.8) is None
    assert 0.75 < monotonic() - began < 0.8 * len(NAMES)  # less than a time limit for each
    assert held() == [names[3]]
    with pytest.raises(LockNotAcquired, match=f"<Lock '{names[3]}'> is held by"), MultiLock(*NAMES, blocking=False):
        pass
    assert len(leases) == 2


def test_what_is_held_is_renewed_while_it_waits_for_the_rest(kit, waiting):
    first, second = in_order(["a", "b"])
    lease, found = Lock(second).acquire(), []
    thread = waiting(lambda: found.append(MultiLock("a", "b", timeout=0.3).acquire()))
    began = monotonic()
    while monotonic() - began < 1:
        assert not Lock(first).acquire(blocking=False)
    lease.release()
    thread.join(10)
    assert found[0].held


def test_it_begins_anew_when_what_it_held_was_lost_meanwhile(kit, waiting):
    first, second = in_order(["a", "b"])
    lease, found = Lock(second).acquire(), []
    thread = waiting(lambda: found.append(MultiLock("a", "b", timeout=0.5).acquire()))
    kit.client.delete(next(key for key in kit.keys() if key.endswith(f"{first}:holder")))
    thief = Lock(first).acquire()
    lease.release()
    other = Lock(second).acquire(blocking_timeout=10)  # it holds nothing while it waits for the first one again
    assert other
    assert not found
    other.release()
    thief.release()
    thread.join(10)
    assert found[0].held


def test_no_deadlock_whatever_the_order(kit):
    inside, wrong, done = dict.fromkeys(NAMES, 0), [], []

    def work(seed):
        turns = random.Random(seed)
        for _ in range(12):
            names = turns.sample(NAMES, 3)
            with MultiLock(*names):
                for name in names:
                    inside[name] += 1
                wrong.extend(name for name in names if inside[name] > 1)
                for name in names:
                    inside[name] -= 1
        done.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(done) == 8
    assert not wrong
    assert not held()


def test_cancelled_attempt_leaves_nothing(kit):
    async def main():
        lease = await Lock(in_order(NAMES)[3]).aacquire()
        for turn in range(100):
            if turn == 50:
                await lease.arelease()
            task = asyncio.create_task(MultiLock(*NAMES).aacquire())
            for _ in range(turn % 25):
                await asyncio.sleep(0)
            task.cancel()
            (leases,) = await asyncio.gather(task, return_exceptions=True)
            if isinstance(leases, LeaseGroup):
                await leases.arelease()
            await told(lambda turn=turn: held() == ([lease.name] if turn < 50 else []))

    asyncio.run(main())


def test_cancelled_release_releases_all(kit):
    async def main():
        for turn in range(40):
            leases = await MultiLock("a", "b", "c").aacquire()
            task = asyncio.create_task(leases.arelease())
            await asyncio.sleep(0)  # a task that never began releases nothing
            for _ in range(turn % 8):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await told(lambda: not held())

    asyncio.run(main())


@pytest.mark.parametrize("place", range(3))
def test_error_in_the_middle_leaves_nothing(kit, twin, place):
    names = ["a", "b", "c"]
    lock = Lock(names[place])
    kit.client.rpush(f"{kit.prefix}:{{{lock.tag()}}}:{lock.member}:holder", "something else")
    with pytest.raises(KeyConflict, match=rf"lock:{names[place]}:holder' is a list in place of a string"):
        twin(MultiLock(*names).acquire)
    assert not [name for name in names if name != lock.name and Lock(name).locked()]
    assert not held()


def test_lost_replies_are_taken_back(kit, proxy, tcp_valkey, twin):
    kit.connect(proxy.connection, CONNECT_TIMEOUT=2.0, READ_TIMEOUT=0.5)
    twin(twin(MultiLock(*NAMES).acquire).release)  # loads the scripts
    with tcp_valkey.client() as look:
        pattern = f"{kit.prefix}:*:holder"
        with proxy.fault("drop_replies"):
            with pytest.raises(RedisUnavailable) as caught:
                twin(MultiLock(*NAMES).acquire, blocking=False)
            wait_for(lambda: len(list(look.scan_iter(pattern))) == len(NAMES))
        assert caught.value.indeterminate
        wait_for(lambda: not list(look.scan_iter(pattern)))


def test_release_that_finds_one_lost_gives_the_others_back(kit, twin):
    leases = twin(MultiLock("a", "b", "c").acquire)
    kit.client.delete(next(key for key in kit.keys() if key.endswith("lock:b:holder")))
    with pytest.raises(LockLost, match="<Lock 'b'>"):
        twin(leases.release)
    assert not Lock("a").locked()
    assert not Lock("c").locked()
    with pytest.raises(NotHeld):
        twin(leases.release)


def test_extend_that_finds_one_lost_says_so(kit, twin):
    leases = twin(MultiLock("a", "b", timeout=5).acquire)
    assert twin(leases.extend)
    kit.client.delete(next(key for key in kit.keys() if key.endswith("lock:b:holder")))
    with pytest.raises(LockLost, match="<Lock 'b'>"):
        twin(leases.extend, 60)
    assert not leases.held
    assert [lease.held for lease in leases.leases] == [True, False]


def test_caller_does_not_wait_for_itself(kit, twin):
    multi = MultiLock("a", "b")
    leases = twin(multi.acquire)
    with pytest.raises(AlreadyHeld):
        twin(multi.acquire)
    assert leases.held
    assert held() == ["a", "b"]


def test_reentrant_locks_are_shared_and_left_as_they_were(kit, twin):
    outer = Lock("a", reentrant=True)
    twin(outer.acquire)
    leases = twin(MultiLock(Lock("a", reentrant=True), "b").acquire)
    twin(leases.release)
    assert held() == ["a"]
    other = Lock("b").acquire()
    assert twin(MultiLock(Lock("a", reentrant=True), "b").acquire, blocking=False) is None
    assert twin(MultiLock(Lock("a", reentrant=True), "b").acquire, blocking_timeout=0.1) is None
    other.release()
    twin(outer.release)
    assert not held()


def test_options_are_for_the_names(kit, twin):
    leases = twin(MultiLock("a", Lock("b", timeout=9), timeout=5, renew=True).acquire)
    assert [lease.source.lease_timeout for lease in leases.leases] == [5, 9]
    assert [lease.source.renew for lease in leases.leases] == [True, False]
    twin(leases.release)
    with pytest.raises(InvalidValue, match="options of a MultiLock are for names"):
        MultiLock(Lock("a"), timeout=5)


def test_renewed_locks_outlast_their_timeout(kit):
    with MultiLock("a", "b", timeout=0.3, renew=True) as leases:
        before = [lease.deadline for lease in leases.leases]
        wait_for(lambda: all(lease.deadline > old for lease, old in zip(leases.leases, before, strict=True)))
        assert leases.held


def test_server_away_counts_as_taken_where_the_policy_says_so(own_kit, twin):
    own_kit.options(LOCKS={"ON_FAILURE": "closed"})
    own_kit.server.stop()
    assert twin(MultiLock("a", "b").acquire) is None
    with pytest.raises(LockNotAcquired, match="while Redis is unavailable"), MultiLock("a", "b"):
        pass


@pytest.mark.parametrize(
    ("locks", "reason"),
    [
        ((), "takes 1 to 1,000 locks, not 0"),
        (("a",) * 1001, "takes 1 to 1,000 locks, not 1001"),
        (("a", "b", "a"), "lock:a is among the locks of a MultiLock twice"),
        (("a", Lock("a")), "lock:a is among"),
        ((ReadWriteLock("a").read, ReadWriteLock("a").write), "rwlock:a is among"),
        ((Semaphore("a", 2), Semaphore("b", 1, within=Semaphore("a", 2))), "semaphore:a is among"),
        ((ReadWriteLock("a"),), "its .read or its .write"),
        (("a", Lock("b", using="other")), "must use the same connection"),
    ],
)
def test_wrong_locks_are_refused_before_anything_is_sent(locks, reason):
    with pytest.raises(InvalidValue, match=reason):
        MultiLock(*locks)


def test_wrong_arguments_are_refused_before_anything_is_sent():
    for wrong in (None, 1, b"a", "", ["a", "b"]):
        with pytest.raises(InvalidName):
            MultiLock("a", wrong)
    with pytest.raises(InvalidValue, match="blocking_timeout"):
        MultiLock("a", blocking_timeout=-1)
    with pytest.raises(InvalidValue, match="blocking must"):
        MultiLock("a").acquire(blocking=1)
    with pytest.raises(InvalidValue, match="timeout"):
        MultiLock("a", timeout=0)
    with pytest.raises(TypeError):
        MultiLock("a", tiemout=5)


def test_nothing_was_taken_before(kit, twin):
    with pytest.raises(NotHeld):
        twin(MultiLock("a", "b").release)
