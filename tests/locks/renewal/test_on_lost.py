"""What on_lost is told, when, and in which thread or loop."""

import asyncio
import contextlib
import functools
import threading
from time import monotonic

import pytest

from redis_kit.locks import Lock, LockLost, Semaphore
from redis_kit.locks.renewal import renewer
from tests.fixtures.servers import wait_for
from tests.locks.support.leases import told


def test_on_lost_without_renewal_is_called_once_at_the_deadline(kit, commands):
    calls = []
    lease = Lock("a", timeout=0.3, on_lost=lambda lost: calls.append((lost, lost.held, monotonic()))).acquire()
    deadline = lease.deadline
    with commands(kit) as sent:
        wait_for(lambda: calls)
        wait_for(lambda: monotonic() > deadline + 0.3)
    ((lost, held, moment),) = calls
    assert (lost, held, sent) == (lease, False, [])
    assert deadline <= moment < deadline + 0.5
    with pytest.raises(LockLost):
        lease.release()


def test_on_lost_is_not_called_after_a_release(kit):
    calls = []
    for _ in range(20):
        Lock("a", timeout=0.1, on_lost=calls.append).acquire().release()
    wait_for(lambda: Lock("b", timeout=0.1, on_lost=calls.append).acquire() and calls)
    assert {lease.name for lease in calls} == {"b"}


@pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt])
def test_error_of_on_lost_is_logged_and_hurts_nobody(kit, caplog, error):
    calls = []

    def on_lost(lease):
        calls.append(lease)
        raise error("broken on_lost")

    with Lock("other", timeout=0.6, renew=True) as other:
        leases = [Lock(f"a {number}", timeout=0.15, on_lost=on_lost).acquire() for number in range(2)]
        wait_for(lambda: len(calls) == 2)
        assert set(calls) == set(leases)
        wait_for(lambda: caplog.text.count("broken on_lost") >= 2)
        deadline = other.deadline
        wait_for(lambda: other.deadline > deadline)
    assert len(calls) == 2


def test_on_lost_that_never_returns_delays_only_other_calls_of_on_lost(kit):
    release, began = threading.Event(), threading.Event()

    def on_lost(lease):
        began.set()
        release.wait(20)

    with Lock("other", timeout=0.6, renew=True) as other:
        Lock("a", timeout=0.1, on_lost=on_lost).acquire()
        assert began.wait(10)
        try:
            next_one = Lock("b", timeout=0.1, on_lost=on_lost).acquire()
            wait_for(lambda: next_one.watch.decided)
            since = monotonic()
            wait_for(lambda: monotonic() > since + 0.8)
            assert other.held
        finally:
            release.set()


class Callback:
    """An object whose call is a coroutine."""

    def __init__(self, calls):
        self.calls = calls

    async def __call__(self, lease):
        self.calls.append((lease, asyncio.get_running_loop(), threading.current_thread()))


async def note(calls, lease):
    calls.append((lease, asyncio.get_running_loop(), threading.current_thread()))


@pytest.mark.parametrize(
    "make",
    [
        Callback,
        lambda calls: functools.partial(note, calls),
        lambda calls: lambda lease: note(calls, lease),
    ],
    ids=["object", "function", "lambda"],
)
def test_coroutine_on_lost_runs_in_the_loop_of_the_holder(kit, make):
    calls = []

    async def main():
        lease = await Lock("a", timeout=0.1, on_lost=make(calls)).aacquire()
        await told(lambda: calls)
        assert calls == [(lease, asyncio.get_running_loop(), threading.current_thread())]

    asyncio.run(main())
    assert not renewer._running


def test_coroutine_on_lost_begins_before_a_loop_ends_with_its_block(kit, caplog):
    begun, ended = [], []

    async def on_lost(lease):
        begun.append(lease)
        await asyncio.sleep(10)
        ended.append(lease)

    async def main():
        async with Lock("a", timeout=0.1, on_lost=on_lost):
            await asyncio.sleep(10)

    for number in range(1, 6):
        with pytest.raises(LockLost):
            asyncio.run(main())
        assert len(begun) == number
    assert (ended, caplog.text.count("was cancelled, as asyncio.run() does")) == ([], 5)
    assert not renewer._running


def test_coroutine_on_lost_of_a_thread_runs_in_a_loop_of_its_own(kit):
    calls = []
    lease = Lock("a", timeout=0.1, on_lost=functools.partial(note, calls)).acquire()
    wait_for(lambda: calls)
    assert calls[0][0] is lease
    assert calls[0][2] is not threading.current_thread()


def test_coroutine_on_lost_of_a_closed_loop_is_logged(kit, caplog):
    calls = []

    async def main():
        return await Lock("a", timeout=0.2, on_lost=functools.partial(note, calls)).aacquire()

    lease = asyncio.run(main())
    wait_for(lambda: "on_lost of" in caplog.text)
    assert "Event loop is closed" in caplog.text
    assert lease.lost
    assert not calls


def test_failing_coroutine_on_lost_is_logged(kit, caplog):
    async def on_lost(lease):
        raise ValueError("broken on_lost")

    async def main():
        await Lock("a", timeout=0.1, on_lost=on_lost).aacquire()
        await told(lambda: "broken on_lost" in caplog.text)

    asyncio.run(main())


def test_release_around_the_deadline_is_told_once_at_most(kit):
    calls, left = [], []
    lock = Semaphore("a", 100, timeout=0.1, on_lost=calls.append)
    for number in range(20):
        lease = lock.acquire()
        if number % 4 == 0:
            left.append(lease)
            continue
        end = lease.deadline + (number - 10) * 0.000_05
        wait_for(lambda end=end: monotonic() > end)
        with contextlib.suppress(LockLost):
            lease.release()
        assert not lease.held
    wait_for(lambda: set(left) <= set(calls))
    assert len(calls) == len(set(calls))


def test_on_lost_is_not_called_again_where_its_thread_was_disturbed(kit):
    calls = []
    lease = Lock("a", timeout=10, on_lost=calls.append).acquire()
    lease.watch.call_on_lost()
    lease.watch.call_on_lost()
    assert calls == [lease]
    lease.release()
