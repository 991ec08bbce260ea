"""First come, first served."""

import asyncio
import threading
from time import monotonic

import pytest

from redis_kit.core.errors import KeyConflict
from redis_kit.locks import AlreadyHeld, FairLock, Lock, LockLost, LockNotAcquired, NotHeld, Semaphore
from redis_kit.locks.inspection import find
from tests.fixtures.servers import wait_for
from tests.locks.support.leases import tickets, told

pytestmark = pytest.mark.once

MAKERS = [lambda **options: FairLock("a", **options), lambda **options: Semaphore("a", 1, fair=True, **options)]
BOTH = pytest.mark.parametrize("make", MAKERS, ids=["fairlock", "semaphore"])
WAIT = """
with FairLock("a") as lease:
    print(time.monotonic(), flush=True)
"""


@BOTH
def test_those_who_wait_are_served_in_their_order(kit, only_woken, queued, make):
    lease, order = make().acquire(), []

    def thread(number):
        with make():
            order.append(number)

    def loop(number):
        async def wait():
            async with make():
                order.append(number)

        asyncio.run(wait())

    threads = [queued(lambda number=number: (thread, loop)[number % 3 == 1](number)) for number in range(9)]
    lease.release()
    for one in threads:
        one.join(10)
    assert order == list(range(9))
    assert not tickets(kit)


def test_processes_are_served_in_their_order(kit, program):
    lease = FairLock("a").acquire()
    processes = []
    for count in range(1, 5):
        processes.append(program(WAIT))
        wait_for(lambda count=count: len(tickets(kit)) == count)
    lease.release()
    entered = [float(process.communicate(timeout=20)[0]) for process in processes]
    assert entered == sorted(entered)


@BOTH
def test_newcomer_does_not_get_in_before_those_who_wait(kit, queued, make):
    lease, order = make().acquire(), []

    def wait():
        with make():
            order.append("waited")
            wait_for(lambda: len(tickets(kit)) == 1)  # of the newcomer

    waiting = queued(wait)
    lease.release()
    with make():
        order.append("came later")
    waiting.join(10)
    assert order == ["waited", "came later"]


@BOTH
def test_impatient_newcomer_is_refused_while_others_wait(kit, queued, make):
    lease = make().acquire()
    waiting = queued(lambda: make().acquire().release())
    with pytest.raises(LockNotAcquired, match="1 came before and wait for it too"), make(blocking=False):
        pass
    assert len(tickets(kit)) == 1
    lease.release()
    waiting.join(10)


def test_free_lock_is_kept_for_a_ticket_that_has_not_come_yet(kit, twin):
    key = f"{kit.prefix}:{{{FairLock('a').tag()}}}:fairlock:a:"
    seconds, micros = kit.client.time()
    kit.client.zadd(f"{key}queue", {"ticket": 1})
    kit.client.zadd(f"{key}waiters", {"ticket": seconds * 1000 + micros // 1000 + 700})
    kit.client.hset(f"{key}tickets", "ticket", "1 list")
    began = monotonic()
    assert not twin(FairLock("a").acquire, blocking=False)
    assert twin(FairLock("a").acquire, blocking_timeout=5)
    assert 0.5 < monotonic() - began < 4  # the ticket's 0.7 s, and not the 5 of the call


def test_killed_waiter_costs_at_most_five_seconds(kit, program, queued):
    lease, entered = FairLock("a").acquire(), []
    dead = program(WAIT)
    wait_for(lambda: len(tickets(kit)) == 1)

    def wait():
        with FairLock("a"):
            entered.append(monotonic())

    waiting = queued(wait)
    dead.kill()
    dead.wait()
    began = monotonic()
    lease.release()
    waiting.join(20)
    assert entered[0] - began < 15  # and not the 30 of a lease


@BOTH
def test_dead_holder_is_no_obstacle_after_its_lease(kit, queued, make):
    began, order, entered = monotonic(), [], []
    assert make(timeout=0.4).acquire()

    def wait(number):
        with make():
            order.append(number)
            entered.append(monotonic())

    threads = [queued(lambda number=number: wait(number)) for number in range(3)]
    for thread in threads:
        thread.join(10)
    assert order == [0, 1, 2]
    assert 0.39 < entered[0] - began < 0.7


def test_who_gives_up_lets_the_next_one_in(kit, queued):
    lease, entered = Semaphore("a", 2, fair=True).acquire(), []

    def heavy():
        assert Semaphore("a", 2, fair=True, weight=2).acquire(blocking_timeout=0.5) is None

    def light():
        with Semaphore("a", 2, fair=True):
            entered.append(monotonic())

    first = queued(heavy)  # there is one slot, and it takes two
    began = monotonic()
    second = queued(light)
    for thread in (first, second):
        thread.join(10)
    assert 0.3 < entered[0] - began < 1
    lease.release()


@pytest.mark.parametrize("make", [*MAKERS, lambda: Lock("a"), lambda: Semaphore("a", 1)])
def test_who_gives_up_leaves_no_mark_of_a_waiter(kit, make):
    lease = make().acquire()
    for number in range(1, 12):
        assert make().acquire(blocking_timeout=number / 5000) is None
        assert not [key for key in kit.keys() if key.endswith(("waiters", "queue", "tickets"))], number
    assert lease.held


@BOTH
def test_cancelled_waiter_leaves_no_ticket(kit, make):
    async def main():
        async with make():
            for turn in range(12):
                task = asyncio.create_task(make().aacquire())
                await asyncio.to_thread(wait_for, lambda: tickets(kit))
                for _ in range(turn):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                await told(lambda: not tickets(kit))
        assert await make().aacquire(blocking=False)

    asyncio.run(main())


def test_cancelled_attempts_leave_nothing(kit):
    async def main():
        lock = FairLock("a")
        for turn in range(80):
            task = asyncio.create_task(lock.aacquire())
            for _ in range(turn % 16):
                await asyncio.sleep(0)
            task.cancel()
            (lease,) = await asyncio.gather(task, return_exceptions=True)
            if not isinstance(lease, BaseException):
                await lease.arelease()
            assert await lock.aacquire(blocking=False), f"the cancelled attempt {turn} still holds it"
            await lock.arelease()

    asyncio.run(main())


def test_heavy_ticket_is_not_passed_by_lighter_ones(kit, queued):
    def make(weight=1):
        return Semaphore("a", 3, fair=True, weight=weight)

    leases, order = [make().acquire() for _ in range(2)], []

    def wait(weight):
        lease = make(weight).acquire()
        order.append(weight)
        lease.release()

    threads = [queued(lambda weight=weight: wait(weight)) for weight in (3, 1, 2)]
    assert order == []  # one slot is free all the time
    for lease in leases:
        assert not make().acquire(blocking=False)
        lease.release()
    for thread in threads:
        thread.join(10)
    assert order[0] == 3


def test_release_wakes_all_who_fit_and_nobody_else(kit, only_woken, queued):
    def make(weight=1):
        return Semaphore("a", 4, fair=True, weight=weight)

    heavy, entered, stay = make(4).acquire(), [], threading.Event()

    def wait(weight):
        with make(weight):
            entered.append(weight)
            stay.wait(10)

    threads = [queued(lambda weight=weight: wait(weight)) for weight in (1, 2, 3, 1)]
    heavy.release()
    wait_for(lambda: len(entered) == 2)
    assert sorted(entered) == [1, 2]
    assert make().used() == 3
    assert len(tickets(kit)) == 2
    stay.set()
    for thread in threads:
        thread.join(10)
    assert sorted(entered) == [1, 1, 2, 3]


def test_position_in_the_queue(kit, queued, twin):
    assert twin(Semaphore("a", 1, fair=True).acquire)
    semaphores = [Semaphore("a", 1, fair=True) for _ in range(3)]
    threads = [queued(lambda one=one: one.acquire().release()) for one in semaphores]
    assert [twin(one.position) for one in semaphores] == [1, 2, 3]
    assert twin(Semaphore("a", 1, fair=True).position) is None
    assert twin(Semaphore("a", 1).position) is None
    kit.client.delete(*(key for key in kit.keys() if key.endswith("holders")))
    for thread in threads:
        thread.join(20)
    assert [twin(one.position) for one in semaphores] == [None] * 3


@BOTH
def test_tickets_of_a_process_count_on_together(kit, commands, queued, make):
    lease = make().acquire()
    threads = [queued(lambda: make().acquire().release()) for _ in range(5)]
    (key,) = (key for key in kit.keys() if key.endswith(":waiters"))
    before = dict(kit.client.zrange(key, 0, -1, withscores=True))
    with commands(kit) as sent:
        wait_for(lambda: all(end > before[one] for one, end in kit.client.zrange(key, 0, -1, withscores=True)))
    assert [name for name in sent if name == "EVALSHA"] == ["EVALSHA"]
    lease.release()
    for thread in threads:
        thread.join(10)


def test_ticket_taken_for_dead_goes_before_those_behind_it_in_its_process(kit, queued):
    """Else the one that listens would stand behind one that does not listen."""
    lease, order = FairLock("a").acquire(), []

    def wait(number):
        with FairLock("a"):
            order.append(number)

    threads = [queued(lambda number=number: wait(number)) for number in range(3)]
    key = next(key for key in kit.keys() if key.endswith(":queue")).removesuffix("queue")
    first = tickets(kit)[0]
    for remove, part in ((kit.client.zrem, "queue"), (kit.client.zrem, "waiters"), (kit.client.hdel, "tickets")):
        remove(key + part, first)
    wait_for(lambda: tickets(kit)[0] == first)
    lease.release()
    for thread in threads:
        thread.join(10)
    assert order == [0, 1, 2]


def test_lock_is_used_as_any_other(kit, twin):
    lock = FairLock("a", timeout=5)
    lease = twin(lock.acquire)
    assert twin(lock.locked)
    assert twin(lock.owned)
    assert not twin(FairLock("a").owned)
    assert not twin(FairLock("a").acquire, blocking=False)
    assert twin(lock.extend, 60)
    assert 60 < find("a")[0].ends_in <= 65
    twin(lock.reacquire)
    assert find("a")[0].ends_in <= 5
    twin(lock.release)
    assert not twin(lock.locked)
    assert not twin(lock.owned)
    assert twin(lock.acquire).fence > lease.fence
    with pytest.raises(NotHeld):
        twin(lease.release)


def test_refusal_names_the_holder(kit):
    lease = FairLock("a").acquire()
    pattern = r"<FairLock 'a'> is held by .*pid \d+, .*test_fair_lock.py:\d+ for .* s; that lease ends in (30|29)"
    with pytest.raises(LockNotAcquired, match=pattern) as caught, FairLock("a", blocking=False):
        pass
    assert "pid" in caught.value.holder
    assert lease.held


def test_lost_lock_stays_lost(kit, twin):
    lock = FairLock("a", timeout=0.1)
    lease = twin(lock.acquire)
    wait_for(lambda: not FairLock("a").locked())
    other = twin(FairLock("a").acquire)
    for attempt in (lease.extend, lease.release):
        with pytest.raises(LockLost):
            twin(attempt)
    assert other.held
    assert FairLock("a").locked()


def test_caller_does_not_wait_for_itself(kit, twin):
    lock = FairLock("a")
    assert twin(lock.acquire)
    with pytest.raises(AlreadyHeld):
        twin(lock.acquire)
    assert not tickets(kit)


def test_reentrant_lock_is_taken_again_by_its_holder(kit, twin):
    lock = FairLock("a", reentrant=True)
    for _ in range(2):
        assert twin(lock.acquire)
    twin(lock.release)
    assert twin(lock.locked)
    twin(lock.release)
    assert not twin(lock.locked)


def test_fair_lock_and_lock_of_one_name_are_two_things(kit):
    with Lock("a"), FairLock("a"):
        assert Lock("a").locked()


@BOTH
def test_acquire_extend_and_release_are_one_round_trip_and_leave_nothing(kit, twin, commands, make):
    lock = make()
    for _ in ("loads the scripts", "counts"):
        with commands(kit) as sent:
            twin(lock.acquire)
            twin(lock.extend, 5)
            twin(lock.release)
    assert sent == ["EVALSHA"] * 3
    assert [key.rpartition(":")[2] for key in kit.keys()] == ["live"]


@BOTH
def test_everything_ends_by_itself(kit, queued, make):
    lease = make(timeout=60).acquire()
    thread = queued(lambda: make().acquire(blocking_timeout=0.3))
    ends = {key.rpartition(":")[2]: kit.client.pttl(key) for key in kit.keys()}
    assert {"queue", "tickets", "waiters", "holders", lease.token} <= ends.keys()
    assert all(0 < ends[part] <= 3500 for part in ("queue", "tickets", "waiters"))
    assert all(end > 0 for part, end in ends.items() if part != "live")
    thread.join(10)
    assert lease.held


@pytest.mark.parametrize("part", ["live", "fairlock:a:holders", "fairlock:a:limits", "fairlock:a:queue"])
def test_key_of_another_type_is_reported_and_nothing_changed(kit, twin, part):
    key = f"{kit.prefix}:{{{FairLock('a').tag()}}}:{part}"
    kit.client.set(key, "something else")
    with pytest.raises(KeyConflict):
        twin(FairLock("a").acquire, blocking_timeout=0)
    assert kit.keys() == [key]


@pytest.mark.parametrize("part", ["queue", "tickets", "waiters"])
def test_key_of_another_type_is_reported_to_a_caller_that_waits(kit, twin, part):
    lease = FairLock("a").acquire()
    before = kit.keys()
    key = f"{kit.prefix}:{{{FairLock('a').tag()}}}:fairlock:a:{part}"
    kit.client.set(key, "something else")
    with pytest.raises(KeyConflict):
        twin(FairLock("a").acquire, blocking_timeout=5)
    assert kit.keys() == sorted([*before, key])
    kit.client.delete(key)
    lease.release()


def test_crowd_gets_in_one_after_another(kit):
    inside, most, done = [], [], []

    def work(number):
        for _ in range(6):
            with FairLock("a"):
                inside.append(number)
                most.append(len(inside))
                inside.pop()
        done.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(done) == 8
    assert most == [1] * 48
    assert not tickets(kit)
