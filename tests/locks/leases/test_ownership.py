"""Each thread and task finds its own leases."""

import asyncio
import threading

import pytest

from redis_kit.locks import Lock, NotHeld


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


def _run_in_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()
