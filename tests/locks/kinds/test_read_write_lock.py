"""Many readers, or one writer."""

import asyncio
import threading
from time import monotonic

import pytest

from redis_kit.core.errors import InvalidName, InvalidValue
from redis_kit.locks import AlreadyHeld, FairLock, LockLost, LockNotAcquired, NotHeld, ReadWriteLock
from redis_kit.locks.inspection import find
from tests.fixtures.servers import wait_for
from tests.locks.support.leases import tickets

WORK = """
import random
turns = random.Random(int(sys.argv[3]))
for _ in range(12):
    side = turns.choice(["read", "read", "write"])
    with getattr(ReadWriteLock("a"), side):
        began = time.monotonic()
        time.sleep(turns.random() / 200)
        print(side, began, time.monotonic(), flush=True)
"""


def free(side, twin):
    """Tell whether somebody else would get it now."""
    lease = twin(getattr(ReadWriteLock("a"), side).acquire, blocking=False)
    if lease:
        twin(lease.release)
    return bool(lease)


def test_readers_share_and_writers_do_not(kit, twin):
    assert free("read", twin)
    assert free("write", twin)
    readers = [twin(ReadWriteLock("a").read.acquire) for _ in range(3)]
    assert free("read", twin)
    assert not free("write", twin)
    for lease in readers:
        twin(lease.release)
    writer = twin(ReadWriteLock("a").write.acquire)
    assert not free("read", twin)
    assert not free("write", twin)
    twin(writer.release)
    assert free("read", twin)


def test_with_and_async_with(kit):
    lock = ReadWriteLock("a")
    with lock.read as lease, ReadWriteLock("a").read:
        assert lease.held
    with lock.write as lease:
        assert lease.held
        assert not ReadWriteLock("a").read.acquire(blocking=False)

    async def main():
        async with ReadWriteLock("a").read:
            assert not await ReadWriteLock("a").write.aacquire(blocking=False)
        async with ReadWriteLock("a").write as lease:
            assert lease.held

    asyncio.run(main())
    assert not lock.write.locked()


def test_reader_that_comes_after_a_writer_waits_behind_it(kit, only_woken, queued):
    reading, order, stay = ReadWriteLock("a").read.acquire(), [], threading.Event()

    def wait(name, side):
        with getattr(ReadWriteLock("a"), side):
            order.append(name)
            stay.wait(10)

    threads = [queued(lambda one=one: wait(*one)) for one in (("writer", "write"), ("r1", "read"), ("r2", "read"))]
    assert not ReadWriteLock("a").read.acquire(blocking=False)
    reading.release()
    wait_for(lambda: order)
    assert order == ["writer"]
    stay.set()
    for thread in threads:
        thread.join(10)
    assert sorted(order[1:]) == ["r1", "r2"]


def test_writer_that_gives_up_lets_the_readers_behind_it_in(kit, queued):
    reading, entered = ReadWriteLock("a").read.acquire(), []

    def read():
        with ReadWriteLock("a").read:
            entered.append(monotonic())

    began = monotonic()
    writer = queued(lambda: ReadWriteLock("a", blocking_timeout=0.4).write.acquire())
    reader = queued(read)
    for thread in (writer, reader):
        thread.join(10)
    assert 0.3 < entered[0] - began < 0.9
    reading.release()


def test_writers_get_their_turn_among_many_readers(kit):
    stop, waits = threading.Event(), []

    def read():
        while not stop.is_set():
            with ReadWriteLock("a").read:
                pass

    def write():
        for _ in range(5):
            began = monotonic()
            with ReadWriteLock("a").write:
                waits.append(monotonic() - began)
        stop.set()

    threads = [threading.Thread(target=target) for target in (read, read, read, read, write)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(waits) == 5
    assert max(waits) < 2


def test_fences_of_both_sides_grow_together(kit, twin):
    fences = []
    for side in ("read", "write", "read", "read", "write"):
        lease = twin(getattr(ReadWriteLock("a"), side).acquire)
        fences.append(lease.fence)
        twin(lease.release)
    assert fences == sorted(set(fences))


@pytest.mark.parametrize(("mine", "wanted"), [("read", "write"), ("write", "read"), ("read", "read")])
def test_caller_does_not_wait_for_itself(kit, twin, mine, wanted):
    lock = ReadWriteLock("a")
    assert twin(getattr(lock, mine).acquire)
    with pytest.raises(AlreadyHeld, match="would wait for itself"):
        twin(getattr(lock, wanted).acquire)
    assert not tickets(kit)
    twin(getattr(lock, mine).release)
    assert twin(getattr(lock, wanted).acquire)


def test_each_side_is_a_lock(kit, twin):
    lock = ReadWriteLock("a", timeout=5)
    lease = twin(lock.read.acquire)
    assert twin(lock.read.locked)
    assert twin(lock.write.locked)
    assert twin(lock.read.owned)
    assert not twin(lock.write.owned)
    assert twin(lock.read.extend, 60)
    (found,) = find("a")
    assert (found.kind, found.used) == ("rwlock", 1)
    assert not found.writing
    assert 60 < found.ends_in <= 65
    with pytest.raises(NotHeld):
        twin(lock.write.release)
    twin(lock.read.release)
    with pytest.raises(NotHeld):
        twin(lease.release)
    twin(lock.write.acquire)
    assert find("a")[0].writing
    twin(lock.write.release)
    assert not twin(lock.write.locked)


def test_lost_side_stays_lost(kit, twin):
    lock = ReadWriteLock("a", timeout=0.1)
    lease = twin(lock.read.acquire)
    other = twin(ReadWriteLock("a").read.acquire)
    wait_for(lambda: find("a")[0].used == 1)
    assert not twin(lock.read.owned)
    for attempt in (lease.extend, lease.release):
        with pytest.raises(LockLost):
            twin(attempt)
    assert not twin(ReadWriteLock("a").write.acquire, blocking=False)
    twin(other.release)
    assert twin(ReadWriteLock("a").write.acquire, blocking=False)


def test_refusal_names_who_holds_it(kit):
    leases = [ReadWriteLock("a").read.acquire() for _ in range(2)]
    pattern = r"<WriteLock 'a'> is held by .*test_read_write_lock.py:\d+ for .* s; 2 hold it in all"
    with pytest.raises(LockNotAcquired, match=pattern), ReadWriteLock("a", blocking=False).write:
        pass
    for lease in leases:
        lease.release()
    with (
        ReadWriteLock("a").write,
        pytest.raises(LockNotAcquired, match="<ReadLock 'a'> is held by"),
        ReadWriteLock("a", blocking=False).read,
    ):
        pass


def test_wrong_arguments_are_refused_before_anything_is_sent():
    with pytest.raises(InvalidName):
        ReadWriteLock("")
    with pytest.raises(InvalidValue, match="timeout must be"):
        ReadWriteLock("a", timeout=0)
    with pytest.raises(InvalidValue, match="can't be reentrant"):
        ReadWriteLock("a", reentrant=True)
    with pytest.raises(TypeError):
        ReadWriteLock("a", tiemout=5)


def test_it_is_another_thing_than_a_fair_lock_of_its_name(kit):
    with ReadWriteLock("a").write, FairLock("a"):
        assert sorted(one.kind for one in find("a")) == ["fairlock", "rwlock"]


def test_taking_and_giving_back_is_one_round_trip_each_and_leaves_nothing(kit, twin, commands):
    lock = ReadWriteLock("a")
    for _ in ("loads the scripts", "counts"):
        with commands(kit) as sent:
            for side in (lock.read, lock.write):
                twin(side.acquire)
                twin(side.release)
    assert sent == ["EVALSHA"] * 4
    assert [key.rpartition(":")[2] for key in kit.keys()] == ["live"]


def test_processes_never_read_what_is_being_written(kit, program):
    spans = []
    for process in [program(WORK, number) for number in range(3)]:
        lines = process.communicate(timeout=60)[0].splitlines()
        assert process.returncode == 0
        spans += [(side, float(began), float(ended)) for side, began, ended in map(str.split, lines)]
    assert len(spans) == 36
    for _, moment, _ in spans:
        inside = [side for side, began, ended in spans if began <= moment < ended]
        assert "write" not in inside or inside == ["write"]
