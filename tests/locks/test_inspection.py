"""What is held now, what is waited for and was, and leases that are ended by force."""

import asyncio
import threading
from functools import partial
from time import sleep

import pytest

from redis_kit.core.errors import InvalidName, InvalidValue, KeyConflict
from redis_kit.locks import FairLock, Lease, Lock, LockLost, ReadWriteLock, Semaphore, inspection
from redis_kit.locks.acquiring import wait
from redis_kit.locks.inspection import (
    acontended,
    afind,
    aforce_release,
    aheld_locks,
    alock_history,
    arecent_waits,
    contended,
    find,
    force_release,
    held_locks,
    lock_history,
    recent_waits,
)
from redis_kit.locks.leases.holder import parse_lock
from redis_kit.locks.renewal import pending_releases
from tests.fixtures.servers import wait_for
from tests.locks.support.leases import holder

TWINS = {held_locks: aheld_locks, find: afind, contended: acontended, force_release: aforce_release}


@pytest.fixture(params=["sync", "async"])
def ask(request):
    """Call a function, or its twin."""
    if request.param == "sync":
        return lambda function, *args, **kwargs: function(*args, **kwargs)
    return lambda function, *args, **kwargs: asyncio.run(TWINS[function](*args, **kwargs))


@pytest.fixture
def listed(ask):
    return partial(ask, held_locks)


def test_nothing_is_held(kit, ask, listed):
    assert listed() == ([], [], 0)
    assert ask(find, "a") == []
    assert ask(contended) == []


def test_what_is_held_is_listed_with_its_holder(kit, listed):
    with Lock("a:b", timeout=10) as lease, Semaphore("s", 3, timeout=20), Semaphore("s", 3, timeout=20) as second:
        live = listed()
    (lock,), (semaphore,) = live.locks, live.semaphores
    assert (lock.name, lock.kind, lock.fence, lock.timeout, lock.waiters) == ("a:b", "lock", lease.fence, 10, 0)
    assert "MainThread" in lock.holder
    assert lock.location.startswith("tests/locks/test_inspection.py:")
    assert not [token for token in (lease.token, second.token) if token in repr(live)]
    assert 0 <= lock.held_for < 5
    assert 5 < lock.ends_in <= 10
    assert (semaphore.name, semaphore.kind, semaphore.used, semaphore.limit) == ("s", "semaphore", 2, 3)
    assert 15 < semaphore.ends_in <= 20
    assert not semaphore.limit_is_set
    assert not semaphore.writing
    assert [(one.holder, one.weight, one.timeout) for one in semaphore.holders] == [(lock.holder, 1, 20)] * 2
    assert second.fence in [one.fence for one in semaphore.holders]
    assert listed() == ([], [], 0)


def test_no_more_are_listed_than_asked_for_those_that_end_first(kit, listed):
    leases = [Lock(f"n{number}", timeout=100 + number).acquire() for number in range(40)]
    live = listed(limit=10)
    assert [one.name for one in live.locks] == [f"n{number}" for number in range(10)]
    assert live.more == 30
    assert len(leases) == 40


def test_lease_that_ended_is_not_listed(kit, ask, listed):
    Lock("a", timeout=0.1).acquire()
    Semaphore("a", 1, timeout=0.1).acquire()
    wait_for(lambda: listed() == ([], [], 0))
    wait_for(lambda: ask(find, "a") == [])  # the holder's key ends within the same millisecond


def test_index_forgets_what_ended_now_and_then_when_something_is_taken(kit):
    Lock("a", timeout=0.1).acquire()
    wait_for(lambda: not Lock("a").locked())
    semaphore = Semaphore("a", 1)  # the bucket is that of the name
    index = semaphore.key("live")
    for _ in range(1000):
        with semaphore:
            if kit.client.zrange(index, 0, -1) == ["semaphore:a", "fence"]:
                break
    else:
        pytest.fail("What ended is still in the index.")


def test_extension_moves_the_end(kit, listed):
    with Lock("a", timeout=5) as lease:
        lease.extend(60)
        assert listed().locks[0].ends_in > 60


def test_those_who_wait_are_counted_and_their_time_summed_up(kit, ask, listed, waiting):
    lease = Lock("a").acquire()
    thread = waiting(lambda: Lock("a").acquire())
    wait_for(lambda: listed().locks[0].waiters == 1)
    sleep(0.06)  # waits that are shorter are counted by a sample
    lease.release()
    thread.join(10)
    assert listed().locks[0].waiters == 0
    (one,) = ask(contended)
    assert (one.name, one.kind, one.waits) == ("a", "lock", 1)
    assert 0 < one.waited < 10


def test_longest_waits_come_first(kit, ask):
    for number, name in enumerate(["few", "most", "some"]):
        bucket = Lock(name).key("")
        kit.client.zadd(f"{bucket}waited", {f"lock:{name}": [5, 9000, 700][number]})
        kit.client.zadd(f"{bucket}waits", {f"lock:{name}": number + 1})
    found = ask(contended, limit=2)
    assert [(one.name, one.waits, one.waited) for one in found] == [("most", 2, 9), ("some", 3, 0.7)]


def test_one_name_is_found_whatever_its_kind(kit, ask):
    with Lock("a b", timeout=10) as lease, Semaphore("a b", 2), Lock("other"):
        lock, semaphore = ask(find, "a b")
    assert (lock.name, lock.kind, lock.fence) == ("a b", "lock", lease.fence)
    assert (semaphore.name, semaphore.kind, semaphore.used) == ("a b", "semaphore", 1)
    assert 5 < lock.ends_in <= 10


def test_inspection_takes_two_round_trips_and_one_for_a_name(kit, trips):
    leases = [Lock(f"n{number}").acquire() for number in range(30)]
    for read, count in ((held_locks, 2), (partial(find, "n1"), 1), (contended, 1)):
        trips.clear()
        read()
        assert len(trips) == count
    assert len(held_locks().locks) == len(leases)


@pytest.mark.parametrize("function", [held_locks, contended, partial(find, "a")])
@pytest.mark.parametrize("limit", [0, -1, True, "5", 10_001])
def test_wrong_limit_is_refused(function, limit):
    with pytest.raises(InvalidValue, match="limit"):
        function(limit=limit)


def test_lock_is_taken_from_its_holder_who_learns_of_it(kit, ask, caplog):
    lease = Lock("a").acquire()
    (holder,) = ask(force_release, "a")
    assert holder.thread == "MainThread"
    assert holder.location.startswith("tests/locks/test_inspection.py:")
    (record,) = [one for one in caplog.records if "by force" in one.message]
    assert record.levelname == "WARNING"
    assert str(lease.fence) in record.message
    assert not Lock("a").locked()
    later = Lock("a").acquire(blocking=False)
    assert later.fence > lease.fence
    with pytest.raises(LockLost):
        lease.extend()
    with pytest.raises(LockLost):
        lease.release()
    later.release()


def test_holder_that_renews_learns_of_it_by_its_next_renewal(kit, ask):
    lost = threading.Event()
    lease = Lock("a", timeout=0.6, renew=True, on_lost=lambda lease: lost.set()).acquire()
    assert len(ask(force_release, "a")) == 1
    assert lost.wait(5)
    assert not lease.held
    assert lease.lost
    assert not Lock("a").locked()


def test_nothing_is_taken_where_nobody_holds_it(kit, ask, caplog):
    assert ask(force_release, "a") == []
    assert ask(force_release, "a", kind="semaphore") == []
    assert "by force" not in caplog.text


def test_with_a_fence_nobody_is_hit_who_came_later(kit, ask):
    first = Lock("a").acquire()
    first.release()
    second = Lock("a").acquire()
    assert ask(force_release, "a", fence=first.fence) == []
    assert second.extend()
    assert len(ask(force_release, "a", fence=second.fence)) == 1
    assert not Lock("a").locked()


def test_one_who_waits_gets_it_at_once(kit, ask, waiting):
    Lock("a", timeout=60).acquire()
    got = threading.Event()
    thread = waiting(lambda: Lock("a").acquire() and got.set())
    ask(force_release, "a")
    assert got.wait(0.9)
    thread.join(10)


def test_lock_kept_for_one_who_was_woken_is_nobody_s(kit, ask):
    lock = Lock("a")
    kit.client.set(lock.key("lock:a:holder"), "~baton", px=60_000)
    assert ask(force_release, "a") == []
    assert kit.client.get(lock.key("lock:a:holder")) == "~baton"


def test_one_slot_is_taken_by_its_fence_and_the_others_are_not(kit, ask):
    leases = [Semaphore("s", 3).acquire() for _ in range(3)]
    assert len(ask(force_release, "s", kind="semaphore", fence=leases[1].fence)) == 1
    assert Semaphore("s", 3).acquire(blocking=False)
    leases[0].extend()
    with pytest.raises(LockLost):
        leases[1].extend()
    leases[2].release()


def test_all_slots_are_taken_without_a_fence(kit, ask):
    leases = [Semaphore("s", 3).acquire() for _ in range(3)]
    assert len(ask(force_release, "s", kind="semaphore")) == 3
    assert find("s") == []
    for lease in leases:
        with pytest.raises(LockLost):
            lease.release()


@pytest.mark.parametrize("fair", [False, True])
def test_slots_of_all_limits_and_weights_are_taken_by_force(kit, ask, fair):
    for limit, weight in ((9, 1), (9, 3), (8, 2)):
        assert Semaphore("s", limit, weight=weight, fair=fair).acquire()
    assert len(ask(force_release, "s", kind="semaphore")) == 3
    assert [key.rpartition(":")[2] for key in kit.keys()] == ["live"]


@pytest.mark.parametrize("fair", [False, True])
def test_one_who_waits_for_a_slot_gets_it(kit, ask, waiting, fair):
    lease = Semaphore("s", 1, timeout=60, fair=fair).acquire()
    got = threading.Event()
    thread = waiting(lambda: Semaphore("s", 1, fair=fair).acquire() and got.set())
    ask(force_release, "s", kind="semaphore", fence=lease.fence)
    assert got.wait(0.9)
    thread.join(10)


def nested(tenant):
    return Semaphore(tenant, 2, within=Semaphore("all", 9))


def test_semaphore_within_another_is_listed_as_such(kit, listed):
    with nested("tenant:7"), nested("tenant:7"), nested("b"):
        found = {(one.name, one.within): (one.used, one.limit) for one in listed().semaphores}
    assert found == {("all", ()): (3, 9), ("tenant:7", ("all",)): (2, 2), ("b", ("all",)): (1, 2)}


def test_lease_within_another_is_taken_on_all_levels_from_either(kit, ask):
    first, second, third = nested("a").acquire(), nested("a").acquire(), nested("b").acquire()
    assert len(ask(force_release, "a", kind="semaphore", within=["all"], fence=first.fence)) == 1
    assert (nested("a").used(), Semaphore("all", 9).used()) == (1, 2)
    assert len(ask(force_release, "all", kind="semaphore", fence=second.fence)) == 1
    assert (nested("a").used(), Semaphore("all", 9).used()) == (0, 1)
    assert len(ask(force_release, "all", kind="semaphore")) == 1
    assert held_locks() == ([], [], 0)
    for lease in (first, second, third):
        with pytest.raises(LockLost):
            lease.extend()
    assert ask(force_release, "a", kind="semaphore") == []  # another one, within none


def test_fair_locks_and_read_write_locks_are_shown_as_what_they_are(kit, ask, listed):
    with FairLock("a") as first, ReadWriteLock("b").read, ReadWriteLock("b").read:
        live = listed()
        assert [(one.name, one.kind, one.fence) for one in live.locks] == [("a", "fairlock", first.fence)]
        assert [(one.name, one.kind, one.used, one.writing) for one in live.semaphores] == [("b", "rwlock", 2, False)]
        assert [one.kind for one in ask(find, "b")] == ["rwlock"]
    with ReadWriteLock("b").write:
        assert [one.writing for one in listed().semaphores] == [True]


def test_next_waiter_gets_fair_and_read_write_locks_after_a_forced_release(kit, ask, waiting):
    first, second = FairLock("a", timeout=60).acquire(), ReadWriteLock("b", timeout=60).write.acquire()
    got = [threading.Event(), threading.Event()]
    locks = (FairLock("a"), ReadWriteLock("b").read)
    threads = [
        waiting(lambda one=one, event=event: one.acquire() and event.set())
        for one, event in zip(locks, got, strict=True)
    ]
    assert len(ask(force_release, "a", kind="fairlock", fence=first.fence)) == 1
    assert len(ask(force_release, "b", kind="rwlock", fence=second.fence)) == 1
    assert all(event.wait(0.9) for event in got)
    for thread in threads:
        thread.join(10)
    for lease in (first, second):
        with pytest.raises(LockLost):
            lease.extend()


def test_what_is_wrong_is_refused_before_anything_is_sent(kit, ask, commands):
    with commands(kit) as sent:
        for options in (
            {"kind": "semaphor"},
            {"kind": None},
            {"fence": -1},
            {"fence": "1"},
            {"fence": True},
            {"within": "a"},
            {"within": ["a"]},
        ):
            with pytest.raises(InvalidValue):
                ask(force_release, "a", **options)
        for name in ("", "x" * 513, None):
            with pytest.raises(InvalidName):
                ask(force_release, name)
    assert sent == []
    with pytest.raises(InvalidValue, match="Did you mean 'semaphore'"):
        ask(force_release, "a", kind="semaphor")


def test_live_view_on_every_kind_of_server(any_kit):
    lease, _slot = Lock("a").acquire(), Semaphore("b", 2).acquire()
    assert [one.name for one in held_locks().locks] == ["a"]
    assert [one.name for one in held_locks().semaphores] == ["b"]
    assert [one.kind for one in find("b")] == ["semaphore"]
    assert contended() == []
    assert len(force_release("b", kind="semaphore")) == 1
    assert len(force_release("a", fence=lease.fence)) == 1
    assert held_locks() == ([], [], 0)


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
    wait_for(lambda: [len(queue.turns) for queue in wait._of_threads.values()] == [2])
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
    monkeypatch.setattr(inspection, "parse_lock", lambda reply: parse_lock(stored.encode()))
    assert force_release("a") == []
    assert lost() == 0


def store(kit, numbers, *, ago=0, name="a"):
    """Store numbers as those of an earlier minute, and of an earlier hour."""
    for part, seconds, size in (("minutes", 60, inspection.MINUTES), ("hours", 3600, inspection.HOURS)):
        number = kit.client.time()[0] // seconds - ago
        entry = inspection.ENTRY.pack(number, *numbers)
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
