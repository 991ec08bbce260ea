"""One caller at a time asks the server for a name."""

import asyncio
import threading
from time import monotonic

import pytest

from redis_kit.core import connections
from redis_kit.locks import Lock, LockNotAcquired, Semaphore
from tests.fixtures.servers import wait_for


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
from redis_kit.locks.acquiring.local_queue import _of_threads
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
