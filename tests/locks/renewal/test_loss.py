"""What the holder of a lost lease sees."""

import asyncio

import pytest

from redis_kit.locks import Lock, LockLost
from redis_kit.locks.renewal import scheduler
from tests.fixtures.servers import wait_for
from tests.locks.support.leases import told


def forget(kit):
    """Let the server forget who holds what."""
    kit.client.delete(*kit.keys())


async def in_lock(work):
    async with Lock("a", timeout=0.3, renew=True):
        await work()


async def in_lease(work):
    async with await Lock("a", timeout=0.3, renew=True).aacquire():
        await work()


async def in_both(work):
    async with await Lock("a", timeout=0.3, renew=True).__aenter__():
        await work()


@pytest.mark.parametrize("inside", [in_lock, in_lease, in_both])
def test_task_inside_async_with_is_cancelled_and_sees_lock_lost(kit, inside):
    seen = []

    async def work():
        try:
            forget(kit)
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    async def main():
        with pytest.raises(LockLost) as caught:
            await inside(work)
        assert isinstance(caught.value.__cause__, asyncio.CancelledError)
        assert asyncio.current_task().cancelling() == 0
        await asyncio.sleep(0.01)
        seen.append("went on")

    asyncio.run(main())
    assert seen == ["cancelled", "went on"]


@pytest.mark.parametrize("lost", [False, True])
def test_cancellation_by_somebody_else_stays_one(kit, lost):
    async def main():
        entered = asyncio.Event()

        async def work():
            entered.set()
            try:
                await asyncio.sleep(10)
            finally:
                watch = next(iter(scheduler._loops["default"]._entries)).__self__
                await told(lambda: watch._cancelled or not lost)

        task = asyncio.create_task(in_lock(work))
        await entered.wait()
        if lost:
            forget(kit)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert task.cancelled()

    asyncio.run(main())


def test_timeout_around_it_is_still_a_timeout(kit):
    async def main():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1), Lock("a", timeout=5, renew=True):
                await asyncio.sleep(10)
        assert await Lock("a").aacquire(blocking=False)

    asyncio.run(main())


def test_task_that_took_it_without_async_with_is_not_cancelled(kit):
    lost = []

    async def main():
        lease = await Lock("a", timeout=0.3, renew=True, on_lost=lost.append).aacquire()
        forget(kit)
        await told(lambda: lost)
        await asyncio.sleep(0.05)
        assert not lease.held
        with pytest.raises(LockLost):
            await lease.arelease()

    asyncio.run(main())
    assert len(lost) == 1


def test_task_that_has_left_is_not_cancelled(kit):
    async def main():
        for _ in range(200):
            async with Lock("a", timeout=0.1, renew=True) as lease:
                watch = lease.watch
            watch.lose("it was not")
            watch._cancel(asyncio.current_task())
            await asyncio.sleep(0)

    asyncio.run(main())


def test_only_the_task_inside_is_cancelled_where_the_lease_was_passed_on(kit):
    async def worker(lease):
        async with lease:
            forget(kit)
            await asyncio.sleep(10)

    async def main():
        lease = await Lock("a", timeout=0.3, renew=True).aacquire()
        with pytest.raises(LockLost):
            await asyncio.create_task(worker(lease))
        assert asyncio.current_task().cancelling() == 0

    asyncio.run(main())


def test_error_of_the_block_matters_more_than_the_loss(kit):
    async def main():
        async with Lock("a", timeout=0.3, renew=True):
            forget(kit)
            try:
                await asyncio.sleep(10)
            except asyncio.CancelledError:
                raise ValueError("broken") from None

    async def outer():
        with pytest.raises(ValueError, match="broken"):
            await main()
        assert asyncio.current_task().cancelling() == 0

    asyncio.run(outer())


def test_blocks_that_are_lost_together_end_in_one_loss(kit):
    async def both():
        async with Lock("a", timeout=0.3, renew=True), Lock("b", timeout=0.3, renew=True):
            forget(kit)
            await asyncio.sleep(10)

    async def main():
        with pytest.raises(LockLost):
            await both()
        assert asyncio.current_task().cancelling() == 0
        await asyncio.sleep(0.3)

    asyncio.run(main())


def test_reentrant_holder_is_told_at_the_innermost_block(kit):
    lock = Lock("a", timeout=0.3, renew=True, reentrant=True)

    async def inner():
        async with lock:
            forget(kit)
            await asyncio.sleep(10)

    async def outer():
        async with lock:
            with pytest.raises(LockLost):
                await inner()
            assert asyncio.current_task().cancelling() == 0

    with pytest.raises(LockLost):
        asyncio.run(outer())


def test_reentrant_holder_that_left_the_inner_block_is_still_told(kit):
    lock = Lock("a", timeout=0.3, renew=True, reentrant=True)

    async def main():
        async with lock:
            async with lock:
                pass
            forget(kit)
            await asyncio.sleep(10)

    with pytest.raises(LockLost):
        asyncio.run(main())


def test_thread_that_holds_it_is_told_by_held_and_at_the_end(kit):
    def hold():
        with Lock("a", timeout=0.3, renew=True) as lease:
            forget(kit)
            wait_for(lambda: not lease.held)

    with pytest.raises(LockLost, match="ended before"):
        hold()
