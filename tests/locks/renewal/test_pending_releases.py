"""Releases that did not get through: over for the holder at once, and for the server as soon as it answers."""

import asyncio
import contextlib
import itertools
import logging
import threading
from math import inf
from time import monotonic

import pytest
from django.db import transaction

from redis_kit.core import connections
from redis_kit.core.errors import KeyConflict, RedisUnavailable
from redis_kit.locks import FairLock, Lock, LockLost, MultiLock, NotHeld, ReadWriteLock, Semaphore, locked
from redis_kit.locks.acquiring.wait import Attempt
from redis_kit.locks.renewal import pending_releases, scheduler
from tests.fixtures.servers import wait_for
from tests.locks.support.leases import passed

pytestmark = pytest.mark.alone(20)

SOON = 2.0  # seconds after an answer of the server within which all is free
KINDS = {
    "lock": lambda **o: Lock("a", **o),
    "fairlock": lambda **o: FairLock("a", **o),
    "read": lambda **o: ReadWriteLock("a", **o).read,
    "write": lambda **o: ReadWriteLock("a", **o).write,
    "semaphore": lambda **o: Semaphore("a", 2, weight=2, **o),
    "fairsemaphore": lambda **o: Semaphore("a", 2, weight=2, fair=True, **o),
    "nested": lambda **o: Semaphore("a", 2, weight=2, within=Semaphore("all", 2, **o), **o),
}
# What leaves no room for another holder; of a lock for readers and writers that is the other side.
RIVALS = KINDS | {"read": KINDS["write"], "write": KINDS["read"]}
# Kinds differ in their scripts, and twins in how a script is sent: each kind takes turns with one of the two.
PAIRS = list(zip(itertools.cycle(["sync", "async"]), KINDS, strict=False))
IN_TURN = pytest.mark.parametrize(("twin", "kind"), PAIRS, indirect=["twin"])
# The server carries it out, or never hears of it. Both show at once; some tests wait for a silent server instead.
LOSSES = ["reset_replies", "reset_commands"]


@pytest.fixture
def far(kit, proxy, tcp_valkey):
    """The kit through a proxy, and as ``direct`` past it."""
    connections = {"default": proxy.connection, "direct": {"URL": tcp_valkey.url}}
    kit.settings.REDIS_KIT = {**kit.settings.REDIS_KIT, "CONNECTIONS": connections, "READ_TIMEOUT": 0.5}
    return proxy


def lose(proxy, twin, method, loss, *arguments):
    """Call a method whose command, or the reply to it, gets lost."""
    with proxy.fault(loss), pytest.raises(RedisUnavailable) as caught:
        twin(method, *arguments)
    assert caught.value.indeterminate
    return caught.value


def is_free(kind):
    """Wait until a rival that comes another way gets in, and let it out again."""
    rival = RIVALS[kind](using="direct")
    wait_for(lambda: rival.acquire(blocking=False), timeout=SOON)
    rival.release()


def pending(using="default"):
    queue = pending_releases._queues.get(using)
    return list(queue.entries.values()) if queue else []


@pytest.mark.parametrize("loss", LOSSES)
@IN_TURN
def test_release_that_got_lost_is_over_at_once_and_free_soon(far, twin, kind, loss):
    lock = KINDS[kind](timeout=60)
    lease = twin(lock.acquire)
    error = lose(far, twin, lock.release, loss)
    assert error.__notes__ == [pending_releases.RETRY_NOTE]
    assert (lease.held, lease.lost) == (False, False)
    is_free(kind)
    wait_for(lambda: not pending())
    with pytest.raises(NotHeld):
        twin(lock.release)
    with pytest.raises(NotHeld):
        twin(lease.extend)


def test_error_of_several_failed_releases_says_once_that_they_are_repeated(far, twin):
    leases = twin(MultiLock("a", Lock("b"), Semaphore("c", 1), timeout=60).acquire)
    error = lose(far, twin, leases.release, "blackhole")
    assert error.__notes__.count(pending_releases.RETRY_NOTE) == 1
    wait_for(lambda: not pending())


def test_end_of_a_block_says_that_the_release_is_repeated(far):
    with pytest.raises(RedisUnavailable) as caught, Lock("a", timeout=60):
        far.set("blackhole")
    far.set("ok")
    assert caught.value.__notes__ == [pending_releases.RETRY_NOTE]
    wait_for(lambda: not pending())


@pytest.mark.parametrize("lock", [Lock("a", timeout=60), MultiLock("a", "b", timeout=60)], ids=["one", "several"])
def test_log_of_a_failed_release_says_that_it_is_repeated(far, caplog, lock):
    with contextlib.suppress(LookupError), lock:
        far.set("blackhole")
        raise LookupError
    far.set("ok")
    assert [
        one.getMessage().endswith(pending_releases.RETRY_NOTE)
        for one in caplog.records
        if "released" in one.getMessage()
    ] == [True]
    wait_for(lambda: not pending())


@pytest.mark.parametrize("loss", LOSSES)
def test_all_of_several_locks_are_free_soon(far, twin, loss):
    multi = MultiLock("a", Lock("b"), Semaphore("c", 1), timeout=60)
    leases = twin(multi.acquire)
    lose(far, twin, leases.release, loss)
    assert not any(lease.held for lease in leases.leases)
    rival = MultiLock(*(Lock(name, using="direct") for name in "ab"), Semaphore("c", 1, using="direct"))
    wait_for(lambda: rival.acquire(blocking=False), timeout=SOON)


@pytest.mark.parametrize("kind", ["lock", "fairlock", "write"])
def test_what_another_took_meanwhile_is_not_handed_out_again(far, twin, kind):
    options = {"reentrant": True} if kind in ("lock", "fairlock") else {}
    lock = KINDS[kind](timeout=60, **options)
    twin(lock.acquire)
    twin(lock.release)  # else the lost reply may be that the server does not know the script
    lease = twin(lock.acquire)
    lose(far, twin, lock.release, "reset_replies")
    other = RIVALS[kind](using="direct", **options).acquire(blocking=False)
    assert other.held
    assert twin(lock.acquire, blocking=False) is None
    assert twin(KINDS[kind](**options).acquire, blocking_timeout=0.3) is None  # nor AlreadyHeld
    assert not lease.held
    other.release()
    assert twin(lock.acquire, blocking_timeout=0.3) is not lease


@IN_TURN
def test_holder_is_not_kept_out_by_its_own_lost_release(far, twin, kind, monkeypatch):
    monkeypatch.setattr(scheduler, "add", lambda *item, **when: None)  # the background never comes
    lock = KINDS[kind](timeout=60)
    first = twin(lock.acquire)
    lose(far, twin, lock.release, "reset_commands")
    assert pending()
    second = twin(lock.acquire, blocking=False)
    assert second.held
    assert second.token != first.token
    assert not pending()
    twin(lock.release)


def test_late_release_leaves_the_next_lease_of_the_same_holder_alone(far, twin):
    lock = Lock("a", timeout=60)
    first = twin(lock.acquire)
    lose(far, twin, lock.release, "reset_replies")
    second = twin(lock.acquire, blocking_timeout=1)
    pending_releases.add(lock, first.token, ends_by=monotonic() + 60)
    wait_for(lambda: not pending())
    assert second.held
    assert twin(lock.owned)


@pytest.mark.parametrize("loss", LOSSES)
def test_released_lease_is_renewed_no_longer_and_never_lost(far, twin, caplog, loss):
    lost = []
    lock = Lock("a", timeout=0.5, renew=True, on_lost=lost.append)
    lease = twin(lock.acquire)
    far.set(loss)
    with pytest.raises(RedisUnavailable):
        twin(lock.release)
    passed(0.6, since=lease.acquired_at)
    far.set("ok")
    is_free("lock")
    assert not lost
    assert "was lost" not in caplog.text


def test_inner_release_of_a_reentrant_lock_asks_nobody(far, twin):
    lock = Lock("a", timeout=60, reentrant=True)
    lease = twin(lock.acquire)
    assert twin(lock.acquire) is lease
    with far.fault("blackhole"):
        twin(lock.release)
        assert lease.held
        with pytest.raises(RedisUnavailable):
            twin(lock.release)
        assert not lease.held
    is_free("lock")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("loss", LOSSES)
def test_release_at_the_end_of_a_transaction_is_caught_up_on(far, caplog, loss):
    with transaction.atomic():
        with Lock("a", timeout=60, release="on_commit") as lease:
            pass
        far.set(loss)
    assert not lease.held
    assert "could not be released" in caplog.text
    far.set("ok")
    is_free("lock")


def test_function_that_is_locked_leaves_nothing(far):
    @locked("a", timeout=60)
    def work():
        far.set("blackhole")
        raise LookupError("of the function")

    with pytest.raises(LookupError):
        work()
    far.set("ok")
    is_free("lock")


@pytest.mark.parametrize("how", ["extend", "reacquire"])
@IN_TURN
def test_release_after_a_lost_extension_is_one(far, twin, kind, how):
    lock = KINDS[kind](timeout=60)
    lease = twin(lock.acquire)
    lose(far, twin, getattr(lock, how), "reset_replies", *([3600] if how == "extend" else []))
    assert lease.held
    twin(lock.release)
    is_free(kind)


def test_release_is_retried_until_an_unknown_extension_has_ended(far, twin):
    lock = Lock("a", timeout=0.3)
    lease = twin(lock.acquire)
    lose(far, twin, lock.extend, "reset_replies", 3600)
    far.set("blackhole")
    with pytest.raises(RedisUnavailable):
        twin(lock.release)
    passed(0.5, since=lease.acquired_at)
    assert pending()
    far.set("ok")
    is_free("lock")


def test_attempt_that_reaches_the_server_after_its_release_is_found(far, monkeypatch):
    monkeypatch.setattr(pending_releases, "IN_TRANSIT", 0.3)
    source, late = Lock("a", timeout=60), Attempt(60, wait=0)
    pending_releases.add(source, late.token)
    wait_for(lambda: pending()[0].was_unknown)
    assert source.run_flow(only(late.request(source)))
    assert source.locked()
    is_free("lock")


def only(step):
    return (yield step)


def test_lease_that_a_frozen_server_grants_too_late_is_released(own_kit, twin):
    twin(twin(Lock("a").acquire).release)  # connects
    own_kit.server.freeze()
    try:
        with pytest.raises(RedisUnavailable):
            twin(Lock("a", timeout=0.3).acquire, blocking=False)
        passed(0.5)
        assert pending()
    finally:
        own_kit.server.thaw()
    wait_for(lambda: Lock("a").acquire(blocking=False), timeout=SOON)


def test_it_is_tried_as_soon_as_the_breaker_closes(own_kit, monkeypatch):
    monkeypatch.setattr(pending_releases, "RETRY_UNAVAILABLE", (600, 600))
    lease, breaker = Lock("a", timeout=60).acquire(), connections.client().breaker
    own_kit.server.freeze()
    try:
        with pytest.raises(RedisUnavailable):
            lease.release()
        wait_for(lambda: pending_releases._queues["default"].is_unavailable)
        while not breaker.is_open:
            with contextlib.suppress(RedisUnavailable):
                lease.source.locked()
    finally:
        own_kit.server.thaw()
    wait_for(lambda: not breaker.is_open and not Lock("a").locked())


def test_it_gives_up_when_the_lease_has_ended_by_itself(own_kit, caplog):
    caplog.set_level(logging.INFO, "redis_kit.locks")
    lease = Lock("a", timeout=0.4).acquire()
    own_kit.server.freeze()
    try:
        with pytest.raises(RedisUnavailable):
            lease.release()
        assert pending()
        wait_for(lambda: not pending())
    finally:
        own_kit.server.thaw()
    assert "Leases on 'default' that timed out before they could be released: 1" in caplog.text


def test_thousands_go_out_in_few_round_trips_and_then_it_sleeps(kit, trips):
    leases = [Semaphore("a", 5000, timeout=60).acquire() for _ in range(1000)]
    other = [Lock(f"a {number}", timeout=60).acquire() for number in range(200)]
    del trips[:]
    queue = pending_releases.PendingReleases("default")
    for lease in (*leases, *other):
        entry = pending_releases.PendingRelease(lease.source, lease.token, ends_by=inf, when=0.0)
        queue.entries[entry.token] = entry
    while queue.entries:
        queue.run_once()
    assert queue.run_once() == inf
    assert len(trips) <= 10 + 16 + 4  # the server may have to be given the scripts
    assert not any(key.endswith(("holder", "holders")) for key in kit.keys())


def test_one_that_the_server_refuses_holds_up_no_other(kit):
    wrong, right = Lock("a", timeout=60), Lock("b", timeout=60)
    right.acquire()
    kit.client.rpush(wrong.keys().holder, "something else")
    pending_releases.add(wrong, "f" * 32, ends_by=monotonic() + 60)
    pending_releases.add(right, right.own_lease().token, ends_by=monotonic() + 60)
    wait_for(lambda: not right.locked())
    with pytest.raises(KeyConflict):
        wrong.locked()
    wait_for(lambda: [entry.source for entry in pending()] == [wrong])


def test_it_works_on_each_kind_of_server(any_kit):
    leases = [Lock(f"a {number}", timeout=60).acquire() for number in range(20)]
    leases.append(Semaphore("s", 2, weight=2, timeout=60).acquire())
    for lease in leases:
        pending_releases.add(lease.source, lease.token, ends_by=lease.ends_by)
    wait_for(lambda: not pending())
    assert not any(Lock(f"a {number}").locked() for number in range(20))
    assert Semaphore("s", 2).used() == 0


def test_waiter_gets_what_was_released_in_the_background(far, waiting):
    lock = Lock("a", timeout=60)
    lock.acquire()
    found = []
    with contextlib.ExitStack() as stack:
        thread = threading.Thread(
            target=lambda: found.append(Lock("a", using="direct").acquire(blocking_timeout=10)), daemon=True
        )
        stack.callback(thread.join, 15)
        lose(far, lambda method: method(), lock.release, "blackhole")
        thread.start()
    assert found[0].held


CANCELLED_AT_THE_END = """
import asyncio
lock = Lock("a", timeout=60)

async def main():
    async with lock:
        print("inside", flush=True)
        asyncio.current_task().cancel()
        try:
            await asyncio.sleep(60)
        finally:
            asyncio.current_task().cancel()  # and the next await is that of the release

try:
    asyncio.run(main())
except asyncio.CancelledError:
    print("cancelled", flush=True)
"""

FORK = """
from redis_kit.locks.renewal import pending_releases, scheduler as renewals
renewals.add = lambda *item, **when: None
lease = Lock("a", timeout=60).acquire()
pending_releases.add(lease.source, lease.token, ends_by=lease.ends_by)
child = os.fork()
if child == 0:
    known = bool(pending_releases._queues)
    sys.exit(7 if known else 0)  # with all that is done at the end of a process
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), Lock("a").locked(), flush=True)
"""


def test_release_that_is_cancelled_at_the_end_of_a_process_gets_through(kit, program):
    process = program(CANCELLED_AT_THE_END)
    output, _ = process.communicate(timeout=60)
    assert output.split() == ["inside", "cancelled"]
    assert not Lock("a").locked()


def test_forked_child_releases_nothing_of_its_parent(kit, program):
    process = program(FORK)
    output, _ = process.communicate(timeout=60)
    assert output.split() == ["0", "True"]
    assert not Lock("a").locked()  # the parent did, at its own end


def test_two_cancellations_in_a_row_leave_nothing(kit):
    async def main():
        for turn in range(60):
            task = asyncio.create_task(Lock("a", timeout=60).aacquire())
            for _ in range(turn % 15):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.sleep(0)
            task.cancel()
            (found,) = await asyncio.gather(task, return_exceptions=True)
            if not isinstance(found, asyncio.CancelledError):
                await found.arelease()
            lease = await Lock("a", timeout=60).aacquire(blocking_timeout=5)
            assert lease, turn
            await lease.arelease()

    asyncio.run(main())


def test_extension_whose_server_lost_the_lease_is_told_with_its_reason(kit, twin, caplog):
    lost = []
    lock = Lock("a", timeout=30, renew=True, on_lost=lost.append)
    lease = twin(lock.acquire)
    kit.client.delete(lock.keys().holder)
    with pytest.raises(LockLost):
        twin(lock.reacquire)
    wait_for(lambda: lost)
    assert lost == [lease]
    assert "was lost: the server did not know it any more when its holder extended it." in caplog.text


@pytest.mark.parametrize("renew", [True, False])
def test_loss_after_a_failed_extension_is_logged_with_its_reason(far, twin, caplog, renew):
    lost = []
    lock = Lock("a", timeout=30, renew=renew, on_lost=lost.append)
    lease = twin(lock.acquire)
    far.set("blackhole")
    with pytest.raises(RedisUnavailable):
        twin(lease.extend, 0.6, replace_ttl=True)
    wait_for(lambda: lost)
    far.set("ok")
    reason = (
        "it ended, and the last attempt failed: Redis can't be reached"
        if renew
        else "it timed out, and extend() failed: Redis can't be reached"
    )
    assert reason in caplog.text


def test_run_against_a_silent_server_leaves_time_for_the_renewals(far, monkeypatch):
    pending, tries = pending_releases.PendingReleases("default"), []
    locks = [Lock(f"a{number}") for number in range(40)]
    buckets = {lock.tag() for lock in locks}
    assert len(buckets) > 6
    for number, lock in enumerate(locks):
        entry = pending_releases.PendingRelease(lock, f"token {number}", ends_by=monotonic() + 60, when=monotonic())
        pending.entries[entry.token] = entry
    run_flow = Lock.run_flow
    monkeypatch.setattr(Lock, "run_flow", lambda self, steps: tries.append(self.tag()) or run_flow(self, steps))
    with far.fault("blackhole"):
        pending.run_once()
        first = len(tries)
        pending.run_once()
    assert first < 5  # half a second each
    assert tries[first] not in tries[:first]  # the silent ones come last
