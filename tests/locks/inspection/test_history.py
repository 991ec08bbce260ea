"""Waits and lost leases by minute and by hour: what counts, how long it lasts, and what reads it."""

import asyncio
import threading
from functools import partial
from time import sleep

import pytest

from redis_kit.core.errors import InvalidValue, KeyConflict
from redis_kit.locks import FairLock, Lease, Lock, LockLost, ReadWriteLock, Semaphore
from redis_kit.locks.acquiring import local_queue
from redis_kit.locks.holders.holder import parse_lock
from redis_kit.locks.inspection import (
    alock_history,
    api,
    arecent_waits,
    contended,
    find,
    force_release,
    history,
    lock_history,
    recent_waits,
)
from redis_kit.locks.renewal import pending_releases
from tests.fixtures.servers import wait_for
from tests.locks.support.leases import holder

KINDS = {
    "lock": Lock,
    "fair lock": FairLock,
    "writer": lambda name, **options: ReadWriteLock(name, **options).write,
    "semaphore": partial(Semaphore, limit=1),
    "fair semaphore": partial(Semaphore, limit=2, weight=2, fair=True),
    "nested semaphore": lambda name, **options: Semaphore(name, 2, within=Semaphore("all", 1), **options),
}


@pytest.fixture(params=KINDS)
def make(request):
    return KINDS[request.param]


def total(stored):
    """Return the sums of all minutes or hours, and the longest wait."""
    waits, waited, longest, timeouts, lost = zip(*(each[1:] for each in stored), strict=True)
    return sum(waits), sum(waited), max(longest), sum(timeouts), sum(lost)


def lost():
    return total(recent_waits())[-1]


def ring(part, name="a"):
    """Return the key of the numbers in a name's bucket."""
    return Lock(name).key(part)


def test_waits_and_callers_that_give_up_are_counted(kit, make, waiting):
    lease = make("a").acquire()
    assert total(recent_waits()) == (0, 0, 0, 0, 0)
    assert make("a").acquire(blocking_timeout=0.25) is None
    waits, waited, longest, timeouts, _ = total(recent_waits())
    assert (waits, timeouts) == (1, 1)
    assert 0.05 <= longest == waited < 5
    thread = waiting(lambda: make("a").acquire().release())
    sleep(0.06)  # waits that are shorter are counted by a sample
    lease.release()
    thread.join(10)
    waits, waited, _, timeouts, lost = total(lock_history())
    assert (waits, timeouts, lost) == (2, 1, 0)
    assert waited >= 0.15
    assert [(name.name, name.waits) for name in contended()] == [("a", 2)]


def test_wait_behind_callers_of_the_same_process_counts_from_its_start(kit, waiting):
    may_end, lease = threading.Event(), Lock("a").acquire()

    def hold():
        with Lock("a"):
            may_end.wait(10)

    first = waiting(hold)  # asks the server; the second one waits in this process
    second = threading.Thread(target=lambda: Lock("a").acquire().release())
    second.start()
    wait_for(lambda: [len(queue.turns) for queue in local_queue._of_threads.values()] == [2])
    sleep(0.4)
    lease.release()
    wait_for(lambda: total(recent_waits())[0] == 1 and [lock.waiters for lock in find("a")] == [1])
    may_end.set()
    first.join(10)
    second.join(10)
    waits, waited, *_ = total(recent_waits())
    assert waits == 2
    assert waited > 0.6  # both have waited for 0.4 s


def test_calls_without_a_wait_write_no_history(kit, make):
    with make("a"):
        assert make("a").acquire(blocking=False) is None
    lease = make("a").acquire()
    lease.extend()
    lease.release()
    assert not [key for key in kit.keys() if key.endswith(("minutes", "hours"))]


@pytest.mark.parametrize("end", [Lease.release, Lease.extend])
def test_lease_that_ended_before_its_release_or_extension_counts_as_lost(kit, make, end):
    lease = make("a").acquire()
    kit.client.delete(*kit.keys())
    with pytest.raises(LockLost):
        end(lease)
    assert lost() == 1


def test_release_that_is_sent_again_is_not_a_loss(kit, make):
    source = make("a")
    lease = source.acquire()
    pending_releases.add(source, lease.token, ends_by=lease.ends_by, after=60)
    lease.release()
    source.acquire().release()  # sends the pending release first
    assert not pending_releases._queues["default"].entries
    assert lost() == 0


def test_forced_release_of_a_lease_that_is_over_is_not_a_loss(kit, monkeypatch):
    lease = Lock("a").acquire()
    stored = kit.client.get(holder(kit))
    lease.release()
    monkeypatch.setattr(api, "parse_lock", lambda reply: parse_lock(stored.encode()))
    assert force_release("a") == []
    assert lost() == 0


def store(kit, numbers, *, ago=0, name="a"):
    """Store numbers as those of an earlier minute, and of an earlier hour."""
    for part, seconds, size in (("minutes", 60, history.MINUTES), ("hours", 3600, history.HOURS)):
        number = kit.client.time()[0] // seconds - ago
        entry = history.ENTRY.pack(number, *numbers)
        kit.client.setrange(ring(part, name), number % size * len(entry), entry)


def lose(name="a"):
    lease = Lock(name).acquire()
    force_release(name)
    with pytest.raises(LockLost):
        lease.release()


def test_minutes_and_hours_of_all_buckets_are_added_up(kit):
    store(kit, (3, 4000, 2500, 1, 0), ago=7)
    store(kit, (2, 1000, 800, 0, 4), ago=7, name="b")
    assert ring("minutes", "a") != ring("minutes", "b")
    for stored in (recent_waits(minutes=4320), lock_history(hours=2160)):
        assert total(stored) == (5, 5, 2.5, 1, 4)
        assert len(stored) in {4320, 2160}
    assert total(recent_waits(minutes=6)) == (0, 0, 0, 0, 0)
    first, *_, last = lock_history(hours=8)
    assert (last.start - first.start).total_seconds() == 7 * 3600
    assert first.start.timestamp() % 3600 == 0
    assert asyncio.run(alock_history()) == lock_history()
    assert asyncio.run(arecent_waits()) == recent_waits()


def test_numbers_of_the_cycle_before_are_replaced(kit):
    store(kit, (7, 7, 7, 7, 7), ago=4320)
    store(kit, (7, 7, 7, 7, 7), ago=2160)
    assert total(recent_waits(minutes=4320))[0] == 7  # of 2160 minutes ago
    lose()
    lose()
    assert recent_waits(minutes=1)[0][1:] in {(0, 0, 0, 0, 2), (0, 0, 0, 0, 1)}  # a minute may have begun
    assert lock_history(hours=2)[-1].lost in {2, 1}


def test_rings_are_of_one_size_and_expire(kit):
    lose()
    for part, size, seconds in (("minutes", 103_680, 259_200), ("hours", 51_840, 7_776_000)):
        assert kit.client.strlen(ring(part)) == size
        assert kit.client.memory_usage(ring(part)) < size * 1.3
        assert seconds - 60 < kit.client.ttl(ring(part)) <= seconds


def test_damaged_ring_is_read_and_written(kit):
    kit.client.set(ring("minutes"), b"\xff" * 1001)
    assert total(recent_waits(minutes=4320)) == (0, 0, 0, 0, 0)
    store(kit, (2**32 - 1,) * 5)
    lose()
    assert max(recent_waits(minutes=2), key=lambda each: each.lost).lost == 2**32 - 1


def test_key_of_another_type_keeps_no_caller_from_its_lease(kit):
    kit.client.rpush(ring("minutes"), "x")
    lease = Lock("a").acquire()
    assert Lock("a").acquire(blocking_timeout=0.1) is None
    lease.release()
    with pytest.raises(KeyConflict, match="minutes"):
        recent_waits()
    assert total(lock_history())[0] == 1


@pytest.mark.parametrize(
    "read",
    [lambda number: recent_waits(minutes=number), lambda number: lock_history(hours=number)],
)
@pytest.mark.parametrize("number", [0, 4321, 1.5, "1", None, True])
def test_wrong_number_of_minutes_or_hours_is_refused(read, number):
    with pytest.raises(InvalidValue, match="must be a whole number from 1 to"):
        read(number)


def test_history_on_every_kind_of_server(any_kit):
    lose("a")
    assert total(recent_waits(minutes=4320))[-1] == total(lock_history(hours=2160))[-1] == 1


def test_history_takes_one_round_trip(kit, trips):
    recent_waits(minutes=4320)
    assert len(trips) == 1
