"""Waiting without polling, and in one queue per process."""

import asyncio
import statistics
import threading
from time import monotonic

import pytest

from redis_kit.core import connections
from redis_kit.locks import Lock, LockNotAcquired, Semaphore
from redis_kit.locks.acquiring.wait import Attempt
from tests.fixtures.servers import wait_for
from tests.locks.support.leases import told

MAKERS = [lambda: Lock("a"), lambda: Semaphore("a", 1)]
KINDS = ["lock", "semaphore"]


def only(step):
    return (yield step)


@pytest.fixture
def any_waiter(kit):
    """A function that leaves the mark of a waiter behind, which is gone itself."""

    def leave(member):
        (holder,) = (key for key in kit.keys() if key.endswith(f"{member}:holder"))
        kit.client.zadd(holder.replace(":holder", ":waiters"), {"gone": 9e15})
        kit.client.append(holder, "+")

    return leave


@pytest.mark.parametrize("make", MAKERS, ids=KINDS)
def test_waiter_wakes_at_once_when_the_lock_is_released(kit, waiting, make):
    delays = []
    for _ in range(9):
        lease, woken = make().acquire(), []

        def wait(woken=woken):
            with make():
                woken.append(monotonic())

        thread = waiting(wait)
        released = monotonic()
        lease.release()
        thread.join(10)
        delays.append(woken[0] - released)
    assert statistics.median(delays) < 0.05


@pytest.mark.parametrize("make", MAKERS, ids=KINDS)
def test_blocked_waiter_sends_one_command_a_second(kit, commands, make):
    held = make().acquire()
    make().acquire(blocking_timeout=0.01)
    with commands(kit) as sent:
        assert make().acquire(blocking_timeout=2.5) is None
    assert set(sent) == {"EVALSHA", "BLPOP"}
    # Asked and was refused; blocked, with a question behind that; two looks; gave up.
    assert len(sent) == 6
    assert held.held


@pytest.mark.parametrize("make", MAKERS, ids=KINDS)
def test_each_waiter_in_a_row_is_woken(kit, only_woken, waiting, make):
    lease, order = make().acquire(), []

    async def wait():
        async with make() as mine:
            order.append(mine.fence)

    threads = [waiting(lambda: asyncio.run(wait())) for _ in range(4)]  # each loop asks for itself
    lease.release()
    for thread in threads:
        thread.join(10)
    assert order == sorted(order)
    assert len(order) == 4


def test_several_free_slots_wake_several_waiters(kit, waiting):
    semaphore, done = Semaphore("a", 3), []
    leases = [semaphore.acquire() for _ in range(3)]
    together = threading.Barrier(3)

    async def wait():
        async with Semaphore("a", 3):
            together.wait(10)
            done.append(monotonic())

    threads = [waiting(lambda: asyncio.run(wait())) for _ in range(3)]  # each loop asks for itself
    began = monotonic()
    for lease in leases:
        lease.release()
    for thread in threads:
        thread.join(10)
    assert len(done) == 3
    assert max(done) - began < 0.9


@pytest.mark.parametrize("make", [lambda **o: Lock("a", **o), lambda **o: Semaphore("a", 1, **o)], ids=KINDS)
def test_lock_of_a_dead_holder_is_free_within_200_ms_of_its_end(kit, make):
    late = []
    for _ in range(2):
        began = monotonic()
        assert make(timeout=0.2).acquire()
        lease = make().acquire()
        late.append(monotonic() - began - 0.2)
        lease.release()
    assert -0.01 < min(late) < 0.2


@pytest.mark.parametrize("make", MAKERS, ids=KINDS)
def test_nothing_is_left_behind_when_nobody_waits(kit, make):
    for _ in range(3):
        with make():
            pass
    assert not [key for key in sorted(kit.keys()) if key.endswith(("signal", "waiters"))]


@pytest.mark.parametrize("make", MAKERS, ids=KINDS)
def test_waiter_that_gave_up_leaves_nothing(kit, make):
    lease = make().acquire()
    assert make().acquire(blocking_timeout=0.01) is None
    assert not [key for key in kit.keys() if key.endswith("waiters")]
    lease.release()
    assert not [key for key in kit.keys() if key.endswith(("signal", "holder", "holders"))]


def test_lock_reserved_for_a_dead_waiter_is_free_for_the_next_caller(kit, any_waiter):
    lease = Lock("a").acquire()
    any_waiter("lock:a")
    lease.release()
    assert not Lock("a").locked()
    assert Lock("a").acquire(blocking=False)


def test_lock_whose_baton_went_to_a_waiter_who_died_is_free_after_a_second(kit, any_waiter):
    lease = Lock("a").acquire()
    any_waiter("lock:a")
    lease.release()
    (signal,) = (key for key in kit.keys() if key.endswith("signal"))
    kit.client.lpop(signal)
    assert Lock("a").acquire(blocking=False) is None
    began = monotonic()
    with Lock("a"):
        assert 0.5 < monotonic() - began < 10  # and not the 30 of a lease


def test_question_of_a_waiter_that_is_gone_takes_nothing(kit, any_waiter):
    lease = Lock("a").acquire()
    attempt = Attempt(30.0, wait=5)
    steps = Lock("a")
    attempt.note_refusal(steps.run_flow(only(attempt.request(steps))))
    assert attempt.waiting_since
    assert lease.release() is None
    steps.run_flow(only(steps.release_step(attempt.token)))
    refusal = steps.run_flow(only(attempt.request(steps, woken=True)))
    assert not isinstance(refusal, int)
    assert Lock("a").acquire(blocking=False)


def test_holder_without_an_end_is_not_asked_about_without_a_pause(kit, commands):
    assert Lock("a").acquire()
    (holder,) = [key for key in sorted(kit.keys()) if key.endswith("holder")]
    kit.client.persist(holder)
    with commands(kit) as sent:
        assert Lock("a").acquire(blocking_timeout=0.3) is None
    assert len(sent) <= 4


def test_cancelled_attempts_leave_nothing(kit):
    async def main():
        lock, semaphore = Lock("a"), Semaphore("a", 1)
        for turn in range(120):
            for one in (lock, semaphore):
                task = asyncio.create_task(one.aacquire(blocking=False))
                for _ in range(turn % 12):
                    await asyncio.sleep(0)
                task.cancel()
                (lease,) = await asyncio.gather(task, return_exceptions=True)
                if not isinstance(lease, BaseException):
                    await lease.arelease()
                assert await one.aacquire(blocking=False), f"the cancelled attempt {turn} still holds it"
                await one.arelease()

    asyncio.run(main())


def test_cancelled_release_releases(kit):
    async def main():
        lock = Lock("a")
        for turn in range(60):
            lease = await lock.aacquire()
            task = asyncio.create_task(lease.arelease())
            await asyncio.sleep(0)  # a task that never began releases nothing
            for _ in range(turn % 6):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await told(lambda: not lock.locked())

    asyncio.run(main())


def test_cancelled_waiter_leaves_the_lock_to_others(kit):
    async def main():
        lock = Lock("a")
        async with lock:
            waiter = asyncio.create_task(lock.aacquire())
            await asyncio.wait([waiter], timeout=0.05)
            waiter.cancel()
            await asyncio.gather(waiter, return_exceptions=True)
        assert waiter.cancelled()
        assert await lock.aacquire(blocking=False)

    asyncio.run(main())


@pytest.mark.parametrize("make", [lambda: Lock("a"), lambda: Semaphore("a", 1)], ids=["lock", "semaphore"])
def test_more_tasks_than_connections_may_want_one_lock(kit, make):
    inside, most = 0, 0

    async def work():
        nonlocal inside, most
        async with make():
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1

    async def main():
        await asyncio.gather(*(work() for _ in range(200)))

    asyncio.run(main())
    assert most == 1


def test_more_threads_than_connections_may_want_one_lock(kit, blocked):
    kit.options(MAX_CONNECTIONS=5)
    entered = []

    def work():
        with Lock("a"):
            entered.append(1)

    with Lock("a"):
        threads = [threading.Thread(target=work) for _ in range(30)]
        for thread in threads:
            thread.start()
        wait_for(lambda: len(blocked()) == 1)
    for thread in threads:
        thread.join(10)
    assert len(entered) == 30


@pytest.mark.parametrize("how", ["threads", "tasks"])
def test_waiters_for_more_names_than_connections_go_on_until_their_timeout(kit, blocked, how):
    kit.options(MAX_CONNECTIONS=4, POOL_TIMEOUT=0.05)  # two of them may block
    names = "abcdefgh"
    leases = [Lock(name).acquire() for name in names]
    results = []

    def wait(name):
        results.append(Lock(name).acquire(blocking_timeout=10))

    async def main():
        results.extend(await asyncio.gather(*[Lock(name).aacquire(blocking_timeout=10) for name in names]))

    targets = [(wait, name) for name in names] if how == "threads" else [(lambda: asyncio.run(main()),)]
    threads = [threading.Thread(target=target, args=args) for target, *args in targets]
    for thread in threads:
        thread.start()
    wait_for(lambda: len(blocked()) == 2)
    for lease in leases:
        lease.release()
    for thread in threads:
        thread.join(20)
    assert [result.held for result in results] == [True] * len(names)


def test_full_pool_does_not_outlast_the_blocking_timeout(kit, twin):
    kit.options(MAX_CONNECTIONS=2, POOL_TIMEOUT=20)
    Lock("a").acquire()

    class Connections:
        def take(self):
            return [connections.client()._pool.take() for _ in range(2)]

        async def atake(self):
            return [await connections.aclient()._pool.take() for _ in range(2)]

        async def agive(self, taken):
            for connection in taken:
                connections.aclient()._pool.give(connection)

        def give(self, taken):
            for connection in taken:
                connections.client()._pool.give(connection)

    taken = twin(Connections().take)
    began = monotonic()
    assert twin(Lock("a").acquire, blocking_timeout=0.1) is None
    assert monotonic() - began < 10  # and not after the 20 s of the pool
    twin(Connections().give, taken)


def test_who_waits_behind_others_gives_up_in_time(kit, waiting):
    lease = Lock("a").acquire()
    thread = waiting(lambda: Lock("a").acquire().release())
    assert Lock("a").acquire(blocking_timeout=0.05) is None
    with pytest.raises(LockNotAcquired, match="other callers of this process"), Lock("a", blocking_timeout=0.05):
        pass

    async def main():
        waiter = asyncio.create_task(Lock("a").aacquire())
        await asyncio.sleep(0)
        assert await Lock("a").aacquire(blocking_timeout=0.05) is None
        lease.release()
        return await waiter

    assert asyncio.run(main())
    thread.join(10)


def test_impatient_caller_asks_at_once_although_others_wait(kit, waiting):
    lease = Lock("a").acquire()
    thread = waiting(lambda: Lock("a").acquire().release())
    assert Lock("a").acquire(blocking=False) is None
    lease.release()
    thread.join(10)


def test_cancelled_waiter_lets_the_next_one_ask(kit):
    async def main():
        async with Lock("a"):
            waiters = [asyncio.create_task(Lock("a").aacquire()) for _ in range(3)]
            await asyncio.wait(waiters, timeout=0.05)
            for waiter in waiters[:2]:
                waiter.cancel()
            await asyncio.gather(*waiters[:2], return_exceptions=True)
        assert await asyncio.wait_for(waiters[2], 5)

    asyncio.run(main())


def test_forked_child_does_not_wait_for_a_turn_of_its_parent(kit, program):
    process = program("""
import threading
held = Lock("a").acquire()
threading.Thread(target=lambda: Lock("a").acquire().release(), daemon=True).start()
from redis_kit.locks.acquiring.wait import _of_threads
while not any(gate.tokens() for gate in list(_of_threads.values())):
    pass
child = os.fork()
if child == 0:
    found = Lock("a").acquire(blocking_timeout=3)
    os._exit(0 if found else 1)
held.release()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
""")
    output, _ = process.communicate(timeout=30)
    assert output.split() == ["0"]
