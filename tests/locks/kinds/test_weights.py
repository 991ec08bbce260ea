"""Semaphores of which a lease takes several slots."""

import asyncio
import threading
from time import monotonic

import pytest

from redis_kit.core import flow
from redis_kit.core.errors import InvalidValue, KeyConflict
from redis_kit.locks import LockNotAcquired, Semaphore
from redis_kit.locks.inspection import held_locks
from tests.fixtures.servers import wait_for

pytestmark = pytest.mark.once

SHARED = """
import random
turns = random.Random(int(sys.argv[3]))
for _ in range(15):
    weight = turns.randint(1, 4)
    with Semaphore("a", 5, weight=weight, fair=sys.argv[4] == "fair") as lease:
        began = time.monotonic()
        time.sleep(turns.random() / 200)
        print(weight, began, time.monotonic(), flush=True)
"""


def key(kit, part):
    return next((key for key in kit.keys() if key.endswith(f"semaphore:a:{part}")), None)


@pytest.mark.parametrize("fair", [False, True])
def test_weights_add_up(kit, twin, fair):
    def take(weight):
        return twin(Semaphore("a", 5, weight=weight, fair=fair).acquire, blocking=False)

    three = take(3)
    assert not take(3)
    two = take(2)
    assert not take(1)
    assert twin(Semaphore("a", 5, fair=fair).used) == 5
    twin(three.release)
    assert twin(Semaphore("a", 5, fair=fair).used) == 2
    assert take(3)
    twin(two.release)
    assert take(1)
    assert take(1)
    assert not take(1)


@pytest.mark.parametrize("fair", [False, True])
def test_slots_of_a_dead_holder_come_back_all_at_once(kit, twin, fair):
    assert twin(Semaphore("a", 5, weight=4, timeout=0.2, fair=fair).acquire)
    long = twin(Semaphore("a", 5, timeout=30, fair=fair).acquire)
    assert not twin(Semaphore("a", 5, weight=2, fair=fair).acquire, blocking=False)
    assert twin(Semaphore("a", 5, weight=4, fair=fair).acquire, blocking_timeout=5)
    assert twin(Semaphore("a", 5, fair=fair).used) == 5
    twin(long.release)
    assert twin(Semaphore("a", 5, fair=fair).used) == 4


def test_weight_goes_with_the_last_lease(kit, twin):
    semaphore = Semaphore("a", 5, weight=2)
    leases = [twin(semaphore.acquire), twin(Semaphore("a", 5).acquire)]
    stored = kit.client.zrange(key(kit, "holders"), 0, -1)
    assert sorted(stored) == sorted([f"{leases[0].token} 5 2", f"{leases[1].token} 5", "extra"])
    assert kit.client.zscore(key(kit, "holders"), "extra") == 1
    twin(leases[0].extend, 60, replace_ttl=True)
    assert 30_000 < kit.client.pttl(key(kit, "holders")) <= 60_000
    twin(leases[0].release)
    assert kit.client.zrange(key(kit, "holders"), 0, -1) == [f"{leases[1].token} 5"]
    twin(leases[1].release)
    assert not [one for one in kit.keys() if "semaphore:a" in one or "lease:" in one]


@pytest.mark.parametrize("weight", [1, 2])
@pytest.mark.parametrize("part", ["queue", "tickets", "waiters"])
def test_release_that_meets_a_key_of_another_type_changes_nothing(kit, part, weight):
    semaphore = Semaphore("a", 3, weight=weight, fair=True, timeout=60)
    lease = semaphore.acquire()
    base = key(kit, "holders").removesuffix("holders")
    kit.client.zadd(base + "queue", {"someone": 1})
    kit.client.delete(base + part)
    kit.client.set(base + part, "something else")
    before = {one: (kit.client.dump(one), kit.client.pexpiretime(one)) for one in kit.keys()}
    with pytest.raises(KeyConflict):
        semaphore.run_flow(flow.single(semaphore.release_step(lease.token)))
    assert {one: (kit.client.dump(one), kit.client.pexpiretime(one)) for one in kit.keys()} == before
    kit.client.delete(base + part, base + "queue")
    lease.release()
    assert semaphore.used() == 0


def test_holder_is_stored_with_its_weight(kit, twin):
    lease = twin(Semaphore("a", 5, weight=2, timeout=7).acquire)
    own = next(one for one in kit.keys() if one.endswith(f":lease:{lease.token}"))
    seconds, micros, limit, weight, ttl, who = kit.client.get(own).split(" ", 5)
    assert (limit, weight, ttl) == ("5", "2", "7000")
    assert int(seconds) * 1_000_000 + int(micros) == lease.fence
    assert who.count("\t") == 4
    assert 0 < kit.client.pttl(own) <= 7000
    assert [one.weight for one in held_locks().semaphores[0].holders] == [2]


def test_heavy_release_wakes_as_many_as_fit(kit, waiting):
    heavy, done = Semaphore("a", 3, weight=3).acquire(), []
    together = threading.Barrier(3)

    async def wait():
        async with Semaphore("a", 3):
            await asyncio.to_thread(together.wait, 10)
            done.append(monotonic())

    threads = [waiting(lambda: asyncio.run(wait())) for _ in range(3)]  # each loop asks for itself
    began = monotonic()
    heavy.release()
    for thread in threads:
        thread.join(10)
    assert len(done) == 3
    assert max(done) - began < 0.9  # a lost wake-up would cost 1 s


def test_lighter_caller_need_not_stand_behind_a_heavier_one_of_its_process(kit, waiting):
    lease = Semaphore("a", 3, weight=2).acquire()
    thread = waiting(lambda: Semaphore("a", 3, weight=2).acquire().release())
    assert Semaphore("a", 3).acquire(blocking_timeout=5)
    lease.release()
    thread.join(10)
    assert not thread.is_alive()


@pytest.mark.parametrize("value", [0, -1, 4, 1.5, True, "1", None])
def test_weight_out_of_range_is_refused(value):
    with pytest.raises(InvalidValue, match="weight must be a whole number from 1 to 3"):
        Semaphore("a", 3, weight=value)


@pytest.mark.parametrize("fair", [False, True])
def test_weight_that_can_never_fit_is_not_waited_for(kit, twin, fair):
    assert twin(Semaphore("a", 2, fair=fair).acquire)  # 2 is the smallest limit in use
    heavy = Semaphore("a", 5, weight=3, fair=fair)
    assert twin(heavy.acquire, blocking=False) is None
    with pytest.raises(LockNotAcquired, match="takes 3 at once, so it can never acquire them"):
        twin(heavy.acquire)
    assert key(kit, "waiters") is None
    assert key(kit, "queue") is None


@pytest.mark.parametrize("order", ["fair", "plain"])
def test_processes_with_weights_never_exceed_the_limit(kit, program, order):
    started = [program(SHARED, number, order) for number in range(3)]
    spans = []
    for process in started:
        lines = process.communicate(timeout=60)[0].splitlines()
        assert process.returncode == 0
        spans += [tuple(map(float, line.split())) for line in lines]
    assert len(spans) == 45
    assert max(_weight_at(moment, spans) for _, moment, _ in spans) <= 5


@pytest.mark.parametrize("fair", [False, True])
def test_threads_with_weights_never_exceed_the_limit(kit, fair):
    inside, most, guard = 0, 0, threading.Lock()

    def work(weight):
        nonlocal inside, most
        for _ in range(10):
            with Semaphore("a", 5, weight=weight, fair=fair):
                with guard:
                    inside += weight
                    most = max(most, inside)
                with guard:
                    inside -= weight

    threads = [threading.Thread(target=work, args=(1 + number % 4,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert 0 < most <= 5
    assert inside == 0
    wait_for(lambda: Semaphore("a", 5, fair=fair).used() == 0)


def _weight_at(moment, spans):
    return sum(weight for weight, began, ended in spans if began <= moment < ended)
