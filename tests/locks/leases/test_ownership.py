"""Each thread and task finds its own leases, and each block ends its own."""

import asyncio
import contextlib
import gc
import threading

import pytest
from asgiref.sync import sync_to_async

from redis_kit.locks import Lock, LockLost, MultiLock, NotHeld, ReadWriteLock, Semaphore


def test_thread_releases_its_own_lease_only(kit):
    lock, errors = Lock("a"), []
    lease = lock.acquire()

    def elsewhere():
        assert not lock.owned()
        for attempt in (lock.release, lambda: lock.extend(1), lock.reacquire):
            try:
                attempt()
            except NotHeld as error:
                errors.append(error)

    _run_in_thread(elsewhere)
    assert len(errors) == 3
    assert lock.owned()
    _run_in_thread(lease.release)
    assert not lock.locked()


def test_lock_of_a_thread_that_ended_is_not_given_away(kit):
    lock = Lock("a")
    _run_in_thread(lock.acquire)
    with pytest.raises(NotHeld):
        lock.release()
    assert lock.locked()


def test_task_releases_its_own_lease_only(kit):
    async def main():
        lock = Lock("a")
        lease = await lock.aacquire()
        with pytest.raises(NotHeld):
            await asyncio.create_task(lock.arelease())
        assert await lock.aowned()
        await asyncio.create_task(lease.arelease())
        assert not await lock.alocked()

    asyncio.run(main())


def test_lock_of_a_task_that_ended_is_not_given_to_another(kit):
    async def main():
        lock = Lock("a")
        await asyncio.create_task(lock.aacquire())
        with pytest.raises(NotHeld):
            await lock.arelease()
        assert await lock.alocked()

    asyncio.run(main())


def test_tasks_share_a_lock_object(kit):
    async def main():
        lock, inside, most = Lock("a"), 0, 0

        async def work():
            nonlocal inside, most
            async with lock:
                inside += 1
                most = max(most, inside)
                await asyncio.sleep(0)
                inside -= 1

        await asyncio.gather(*(work() for _ in range(10)))
        assert most == 1

    asyncio.run(main())


def test_child_of_an_ended_task_owns_nothing_of_its_siblings(kit):
    inside, most = 0, 0

    async def work(lease, entered):
        nonlocal inside, most
        async with lease:
            inside += 1
            most = max(most, inside)
            entered.set()
            await asyncio.sleep(0.1)
            inside -= 1

    async def first(lock, tasks, entered):
        tasks.append(asyncio.create_task(work(await lock.aacquire(), entered)))  # handed on

    async def second(lock, entered):
        await entered.wait()
        await work(await lock.aacquire(), entered)

    async def parent(make, tasks, entered):
        async with Lock("warm-up"):
            pass
        tasks.append(asyncio.create_task(first(make(), tasks, entered)))
        tasks.append(asyncio.create_task(second(make(), entered)))

    async def main(make):
        tasks = []
        await asyncio.create_task(parent(make, tasks, asyncio.Event()))
        while tasks:
            await tasks.pop(0)

    asyncio.run(main(lambda: Lock("a", reentrant=True)))
    shared = Lock("b")
    asyncio.run(main(lambda: shared))  # whoever holds nothing may wait
    assert most == 1


def test_tasks_of_one_runner_are_different_owners(kit):
    lock = Lock("a")
    with asyncio.Runner() as runner:
        lease = runner.run(lock.aacquire())
        with pytest.raises(NotHeld, match=r"release the lease that acquire\(\) returned"):
            runner.run(lock.arelease())
        runner.run(lease.arelease())
    assert not lock.locked()


def test_lease_of_a_wait_with_a_time_limit_can_be_released(kit):
    lock = Lock("a")

    async def main():
        lease = await asyncio.wait_for(lock.aacquire(), 10)  # in Python 3.11 this makes a task
        await lease.arelease()
        async with asyncio.timeout(10):
            await lock.aacquire()
        await lock.arelease()

    asyncio.run(main())
    assert not lock.locked()


def test_sync_code_of_an_async_view_belongs_to_its_thread(kit):
    lock = Lock("a")

    async def view():
        await sync_to_async(lock.acquire)()
        assert not await lock.aowned()  # the task holds nothing
        await sync_to_async(lock.release)()

    asyncio.run(view())
    assert not lock.locked()


MAKERS = {
    "lock": lambda: Lock("a"),
    "reentrant": lambda: Lock("a", reentrant=True),
    "semaphore": lambda: Semaphore("a", 5),
    "read": lambda: ReadWriteLock("a").read,
    "multilock": lambda: MultiLock("a", Semaphore("b", 5)),
}
SHARED = {
    "semaphore": MAKERS["semaphore"],
    "multilock": lambda: MultiLock(Semaphore("a", 5), Semaphore("b", 5)),
}


@pytest.fixture(params=MAKERS)
def lock(request, kit):
    return MAKERS[request.param]()


@pytest.fixture(params=SHARED)
def shared(request, kit):
    return SHARED[request.param]()


def is_free(kit):
    return not [key for key in kit.keys() if key.endswith((":holder", ":holders"))]


def test_block_ends_its_own_lease_and_not_one_acquired_in_it(kit, shared):
    with shared as own:
        other = shared.acquire()
    assert (own.held, other.held) == (False, True)
    shared.release()
    assert is_free(kit)


def test_async_block_ends_its_own_lease_and_not_one_acquired_in_it(kit, shared):
    async def main():
        async with shared as own:
            other = await shared.aacquire()
        assert (own.held, other.held) == (False, True)
        await shared.arelease()

    asyncio.run(main())
    assert is_free(kit)


def test_block_of_an_async_fixture_is_left_in_another_task(kit, lock):
    @contextlib.asynccontextmanager
    async def resource():
        async with lock as lease:
            yield lease

    async def main():
        manager = resource()
        lease = await asyncio.create_task(manager.__aenter__())
        assert lease.held
        await asyncio.create_task(manager.__aexit__(None, None, None))
        assert not lease.held

    asyncio.run(main())
    assert is_free(kit)


def test_stack_is_closed_in_another_task(kit, lock):
    async def main():
        stack = contextlib.AsyncExitStack()
        lease = await asyncio.create_task(stack.enter_async_context(lock))
        assert lease.held
        await asyncio.create_task(stack.aclose())
        assert not lease.held

    asyncio.run(main())
    assert is_free(kit)


def hold(lock):
    with lock as lease:
        yield lease


async def ahold(lock):
    async with lock as lease:
        yield lease


def test_block_of_a_generator_is_left_in_another_thread(kit, lock):
    generator, leases = hold(lock), []
    _run_in_thread(lambda: leases.append(next(generator)))
    assert leases[0].held
    generator.close()
    assert not leases[0].held
    assert is_free(kit)


def test_stack_is_closed_in_another_thread(kit, lock):
    stack, leases = contextlib.ExitStack(), []
    _run_in_thread(lambda: leases.append(stack.enter_context(lock)))
    stack.close()
    assert not leases[0].held
    assert is_free(kit)


def test_threads_with_stacks_of_one_object_end_their_own_leases(kit, shared):
    with contextlib.ExitStack() as stack:
        own = stack.enter_context(shared)

        def elsewhere():
            with contextlib.ExitStack() as inner:
                lease = inner.enter_context(shared)
            assert (lease.held, own.held) == (False, True)
            stack.pop_all().close()  # of the other thread

        _run_in_thread(elsewhere)
        assert not own.held
    assert is_free(kit)


def test_generators_may_be_left_in_any_order_and_by_any_thread(kit, shared):
    generators = [hold(shared) for _ in range(3)]
    leases = [next(generator) for generator in generators]
    with shared as own:
        generators[0].close()
        assert [lease.held for lease in leases] == [False, True, True]
        _run_in_thread(generators[1].close)
        assert [lease.held for lease in leases] == [False, False, True]
        assert own.held
    assert leases[2].held
    generators[2].close()
    assert is_free(kit)


def test_async_generators_may_be_left_in_any_order(kit, shared):
    async def main():
        generators = [ahold(shared) for _ in range(3)]
        leases = [await anext(generator) for generator in generators]
        for place, generator in enumerate(generators):
            await generator.aclose()
            assert [lease.held for lease in leases] == [at > place for at in range(3)]

    asyncio.run(main())
    assert is_free(kit)


def test_generator_that_is_dropped_leaves_its_block(kit, lock):
    generator = hold(lock)
    next(generator)
    del generator
    gc.collect()
    assert is_free(kit)


def test_lease_is_released_by_the_thread_or_task_that_it_was_passed_to(kit, lock):
    def work(lease):
        with lease:
            assert lease.held

    async def awork(lease):
        async with lease:
            assert lease.held

    async def main():
        await asyncio.create_task(awork(await lock.aacquire()))

    lease = lock.acquire()
    _run_in_thread(lambda: work(lease))
    assert is_free(kit)
    asyncio.run(main())
    assert is_free(kit)


def test_block_that_was_never_entered_cannot_be_left(kit, lock):
    with pytest.raises(NotHeld, match="No block"):
        lock.__exit__(None, None, None)


def test_block_is_told_that_its_lease_was_lost_though_a_later_one_is_held(kit, shared):
    def hold_both():
        with shared:
            kit.client.delete(*kit.keys())
            leases.append(shared.acquire())

    leases = []
    with pytest.raises(LockLost):
        hold_both()
    assert leases[0].held


def test_lost_fixture_reports_it_and_cancels_nobody_who_has_left(kit):
    lock = Lock("a", timeout=0.2, renew=True)

    async def main():
        left = asyncio.Event()

        async def enter():
            lease = await lock.__aenter__()
            left.set()
            kit.client.delete(*kit.keys())
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(10)
            return lease

        lease = await asyncio.create_task(enter())
        assert lease.lost
        with pytest.raises(LockLost):
            await asyncio.create_task(lock.__aexit__(None, None, None))
        assert asyncio.current_task().cancelling() == 0

    asyncio.run(main())


def _run_in_thread(function):
    errors = []

    def run():
        try:
            function()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    for error in errors:
        raise error
