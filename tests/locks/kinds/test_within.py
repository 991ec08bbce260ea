"""Semaphores within semaphores: so many for each tenant, and so many in all."""

import threading
from time import monotonic

import pytest

from redis_kit.core.errors import InvalidValue
from redis_kit.locks import LockLost, LockNotAcquired, Semaphore
from tests.fixtures.servers import wait_for

pytestmark = pytest.mark.once

WORK = """
import random
turns = random.Random(int(sys.argv[3]))
for _ in range(12):
    tenant = turns.choice("xyz")
    with Semaphore(tenant, 2, within=Semaphore("all", 3)):
        began = time.monotonic()
        time.sleep(turns.random() / 200)
        print(tenant, began, time.monotonic(), flush=True)
"""


def tenant(name, limit=2, *, total=3, **options):
    return Semaphore(name, limit, within=Semaphore("all", total), **options)


def test_both_limits_count(kit, twin):
    taken = [bool(twin(tenant(name).acquire, blocking=False)) for name in "aaabb"]
    assert taken == [True, True, False, True, False]
    assert twin(tenant("a").used) == 2
    assert twin(tenant("b").used) == 1
    assert twin(Semaphore("all", 3).used) == 3


def test_refusal_says_which_is_full(kit):
    leases = [tenant("a").acquire(), tenant("a").acquire()]
    with pytest.raises(LockNotAcquired, match=r"<Semaphore 'a' within 'all'> has 2 of 2"), tenant("a", blocking=False):
        pass
    leases.append(tenant("b").acquire())
    with pytest.raises(LockNotAcquired, match=r"<Semaphore 'all'> has 3 of 3"), tenant("b", blocking=False):
        pass
    assert len(leases) == 3


def test_refused_caller_took_nothing(kit, twin):
    outer = twin(Semaphore("all", 3, weight=3).acquire)
    assert not twin(tenant("a").acquire, blocking=False)
    assert twin(tenant("a").used) == 0
    twin(outer.release)
    inner = [twin(tenant("a").acquire) for _ in range(2)]
    assert not twin(tenant("a").acquire, blocking=False)
    assert twin(Semaphore("all", 3).used) == 2
    assert len(inner) == 2


def test_release_and_extend_are_for_all_levels_and_one_round_trip(kit, twin, commands):
    semaphore = tenant("a", timeout=5)
    for _ in ("loads the scripts", "counts"):
        with commands(kit) as sent:
            twin(semaphore.acquire)
            twin(semaphore.extend, 60)
            ends = [kit.client.zrange(key, 0, -1, withscores=True) for key in kit.keys() if key.endswith("holders")]
            twin(semaphore.release)
    assert [name for name in sent if name == "EVALSHA"] == ["EVALSHA"] * 3
    assert len(ends) == 2
    assert [end for _, end in ends[0]] == [end for _, end in ends[1]]
    assert not [key for key in kit.keys() if ":all" in key]


def test_dead_holder_is_forgotten_on_all_levels(kit, twin):
    lease = twin(tenant("a", 1, timeout=0.2).acquire)
    assert twin(tenant("a", 1, total=1).acquire, blocking_timeout=5)
    with pytest.raises(LockLost):
        twin(lease.release)
    assert twin(Semaphore("all", 3).used) == 1


@pytest.mark.parametrize(("name", "full"), [("a", "the tenant"), ("b", "the whole")])
def test_release_wakes_who_waits_on_that_level(kit, waiting, name, full):
    leases = [tenant("a", total=2).acquire() for _ in range(2)]
    woken = []

    def wait():
        with tenant(name, total=2):
            woken.append(monotonic())

    thread = waiting(wait)
    began = monotonic()
    leases[0].release()
    thread.join(10)
    assert woken[0] - began < 0.5, full
    leases[1].release()


def test_waiter_that_finds_another_level_full_hands_its_wake_up_on(kit, waiting):
    outer, inner, woken = Semaphore("all", 2).acquire(), tenant("a", total=2).acquire(), []

    def wait(name):
        with tenant(name, total=2):
            woken.append((name, monotonic()))

    first, second = waiting(lambda: wait("a")), waiting(lambda: wait("b"))  # both wait for room in all
    tenant("a", total=2).set_limit(1)  # which is of no use any more to the first one, who is woken
    began = monotonic()
    outer.release()
    second.join(10)
    assert woken[0][0] == "b"
    assert woken[0][1] - began < 0.5
    inner.release()
    first.join(10)
    assert [name for name, _ in woken] == ["b", "a"]


def test_three_levels(kit, twin):
    def user(name, firm):
        return Semaphore(name, 1, within=Semaphore(firm, 2, within=Semaphore("all", 3)))

    taken = [bool(twin(user(*one).acquire, blocking=False)) for one in ("aF", "aF", "bF", "cF", "dG", "eG")]
    assert taken == [True, False, True, False, True, False]
    twin(Semaphore("F", 2, within=Semaphore("all", 3)).set_limit, 3)
    assert not twin(user("c", "F").acquire, blocking=False)
    twin(Semaphore("all", 3).set_limit, 4)
    assert twin(user("c", "F").acquire, blocking=False)


def test_name_within_another_is_a_name_of_its_own(kit, twin):
    assert twin(Semaphore("a", 1).acquire)
    assert twin(tenant("a", 1).acquire, blocking=False)
    assert twin(Semaphore("a", 1, within=Semaphore("other", 1)).acquire, blocking=False)
    assert not twin(tenant("a", 1).acquire, blocking=False)


def test_weight_counts_on_all_levels(kit, twin):
    assert twin(tenant("a", 2, weight=2).acquire)
    assert not twin(tenant("b", 2, weight=2).acquire, blocking=False)
    assert twin(tenant("b", 2).acquire, blocking=False)
    with pytest.raises(InvalidValue, match="weight must be a whole number from 1 to 3"):
        tenant("c", 9, weight=4)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"within": "all"}, "within must be a Semaphore, not 'all'"),
        ({"within": Semaphore("all", 3), "fair": True}, "fair=True can't be combined with within"),
        ({"within": Semaphore("all", 3, fair=True)}, "fair=True can't be combined with within"),
        ({"within": Semaphore("all", 3, weight=2)}, "must have the weight 1"),
        ({"within": Semaphore("all", 3, using="other")}, "the connection 'default'"),
    ],
)
def test_what_can_not_be_around_another_is_refused(options, reason):
    with pytest.raises(InvalidValue, match=reason):
        Semaphore("a", 2, **options)


def test_lease_that_the_outer_one_forgot_is_given_back_alone(kit, twin):
    mine, other = twin(tenant("a").acquire), twin(tenant("b").acquire)
    (holders,) = (key for key in kit.keys() if key.endswith("semaphore:all:holders"))
    kit.client.zrem(holders, f"{mine.token} 3")
    twin(mine.release)
    assert twin(Semaphore("all", 3).used) == 1
    twin(other.release)


def test_processes_never_exceed_either_limit(kit, program):
    spans = []
    for process in [program(WORK, number) for number in range(3)]:
        lines = process.communicate(timeout=60)[0].splitlines()
        assert process.returncode == 0
        spans += [(name, float(began), float(ended)) for name, began, ended in map(str.split, lines)]
    assert len(spans) == 36
    for _, moment, _ in spans:
        inside = [name for name, began, ended in spans if began <= moment < ended]
        assert len(inside) <= 3
        assert all(inside.count(name) <= 2 for name in "xyz")


def test_threads_all_get_in(kit):
    done = []

    def work(name):
        for _ in range(8):
            with tenant(name):
                pass
        done.append(name)

    threads = [threading.Thread(target=work, args=(name,)) for name in "aabbccdd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(done) == list("aabbccdd")
    wait_for(lambda: Semaphore("all", 3).used() == 0)
