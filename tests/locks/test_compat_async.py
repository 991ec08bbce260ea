"""What is particular to tasks: they share a lock, are cancelled, and end with their event loop."""

import asyncio
import contextlib
import gc
from time import monotonic

import pytest
import redis.asyncio
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import LockError, LockNotOwnedError

from redis_kit.locks import compat
from redis_kit.locks import compat as module
from redis_kit.locks.compat import AsyncLock, AsyncRepeated, fence_key
from tests.chaos.locks.cancellations import Driven, trials
from tests.fixtures.servers import wait_for

pytestmark = pytest.mark.alone(8)


@pytest.fixture
def key(kit):
    name = f"{kit.prefix}:a"
    yield name
    kit.client.delete(name, fence_key(name.encode()))


@pytest.fixture
def connect(kit):
    def opened(url=kit.url, **options):
        return contextlib.aclosing(redis.asyncio.Redis.from_url(url, **options))

    return opened


@pytest.fixture
def short_lease(monkeypatch):
    monkeypatch.setattr(module, "DEFAULT_TIMEOUT", 0.6)


async def _until(condition):
    await asyncio.to_thread(wait_for, condition)


@pytest.fixture
def repeated(monkeypatch):
    """What locks do again and again in the background, from the first time on."""
    noted = []

    class Noted(AsyncLock._repeated):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            noted.append(self)

    monkeypatch.setattr(AsyncLock, "_repeated", Noted)
    return noted


async def _until_alone(repeated):
    """Wait for what was left to the background, and let nothing follow: it would open a closed client again."""
    while others := asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.gather(*others, return_exceptions=True)
    for each in repeated:
        each.stop()


def test_lock_shared_by_tasks_is_released_by_each(key, connect):
    async def main():
        async with connect() as client:
            lock, inside, most = AsyncLock(client, key, timeout=30), [], []

            async def work():
                async with lock:
                    inside.append(1)
                    most.append(len(inside))
                    await asyncio.sleep(0)
                    inside.pop()

            await asyncio.gather(*(work() for _ in range(30)))
            assert most == [1] * 30
            assert not await lock.locked()

    asyncio.run(main())


def test_lease_is_renewed_while_the_loop_runs(kit, key, connect, short_lease):
    async def main():
        async with connect() as client:
            lock = AsyncLock(client, key)
            assert await lock.acquire()
            until = monotonic() + 1.5
            await _until(lambda: not kit.client.exists(key) or monotonic() > until)
            assert await lock.owned()

    asyncio.run(main())
    assert 0 < kit.client.pttl(key) <= 600


def test_release_ends_the_renewal(kit, key, connect, short_lease, caplog):
    async def main():
        async with connect() as client:
            lock = AsyncLock(client, key)
            await lock.acquire()
            await lock.release()
            assert asyncio.all_tasks() == {asyncio.current_task()}
            await asyncio.sleep(0.3)

    asyncio.run(main())
    assert not kit.client.exists(key)
    assert "its renewal stops" not in caplog.text  # as a beat would say that finds nothing


def test_release_leaves_the_token_of_the_task_that_came_next(key, connect):
    class Lock(AsyncLock):
        async def do_release(self, expected_token):
            await super().do_release(expected_token)
            await asyncio.create_task(self.acquire(token="next"))

    async def main():
        async with connect() as client:
            lock = Lock(client, key, timeout=30)
            await lock.acquire()
            await lock.release()
            assert lock.local.token == b"next"

    asyncio.run(main())


def test_renewal_goes_on_after_an_error(kit, key, connect, short_lease, caplog):
    async def main():
        async with connect() as client:
            lock = AsyncLock(client, key)
            await lock.acquire()
            kit.client.pexpire(key, 60_000)
            right, failed = lock.lua_reacquire, []

            async def fail(**call):
                if not failed:
                    failed.append(call)
                    raise redis.exceptions.ConnectionError("gone for a moment")
                return await right(**call)

            lock.local.renewal[1].stop()
            lock.lua_reacquire = fail
            lock._renew(lock.local.token)
            await _until(lambda: kit.client.pttl(key) <= 600)
            assert failed
            await lock.release()

    asyncio.run(main())
    assert "retrying" in caplog.text


def test_renewal_stops_when_the_lock_is_lost(kit, key, connect, short_lease, caplog):
    async def main():
        async with connect() as client:
            lock = AsyncLock(client, key)
            await lock.acquire()
            kit.client.delete(key)
            await _until(lambda: "its renewal stops" in caplog.text)
            with pytest.raises(LockNotOwnedError):
                await lock.release()

    asyncio.run(main())
    assert not kit.client.exists(key)


def test_cancelled_attempts_hold_nothing_for_long(kit, key, connect):
    async def main():
        async with connect() as client:
            for turn in range(60):
                lock = AsyncLock(client, key, timeout=60)
                task = asyncio.create_task(lock.acquire(blocking=False))
                for _ in range(turn % 12):
                    await asyncio.sleep(0)
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    if await task:
                        await lock.release()
                async with AsyncLock(client, key, timeout=60, blocking_timeout=5):
                    pass

    asyncio.run(main())


def test_waiter_ends_whenever_it_is_cancelled(kit, key, connect, repeated):
    async def main():
        async with connect() as client:
            await AsyncLock(client, key, timeout=30).acquire()
            for steps in range(150):
                task = asyncio.create_task(AsyncLock(client, key, timeout=30).acquire(blocking_timeout=10))
                for _ in range(steps % 50):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task])
                assert task.cancelled(), f"{steps % 50} steps of the event loop"
            await _until_alone(repeated)

    asyncio.run(main())


def test_cancelled_release_can_be_tried_again(kit, key, connect):
    async def main():
        async with connect() as client:
            for turn in range(30):
                lock = AsyncLock(client, key, timeout=60)
                await lock.acquire()
                task = asyncio.create_task(lock.release())
                await asyncio.sleep(0)
                for _ in range(turn % 6):
                    await asyncio.sleep(0)
                task.cancel()
                (cancelled,) = await asyncio.gather(task, return_exceptions=True)
                if cancelled is not None:
                    with contextlib.suppress(LockNotOwnedError):
                        await lock.release()
                assert lock.local.token is None
                assert not await lock.locked()

    asyncio.run(main())


@pytest.mark.parametrize("call", ["acquire", "wait", "release"])
def test_two_cancellations_in_a_row_at_every_await_leave_nothing(kit, key, connect, call):
    async def cut(client, places, *, late):
        lock, rival = (AsyncLock(client, key, timeout=60, blocking_timeout=20) for _ in range(2))
        if call != "acquire":
            await (lock if call == "release" else rival).acquire()
        driven = Driven(lock.release() if call == "release" else lock.acquire(), places, late=late)

        async def work():
            if await driven:
                await lock.release()

        task = asyncio.create_task(work())
        if call == "wait":
            await asyncio.sleep(0.01)
            await rival.release()
        await asyncio.gather(task, return_exceptions=True)
        await _until(lambda: not kit.client.exists(key))
        return driven.count

    async def main():
        async with connect() as client:
            awaits = await cut(client, range(0), late=False)
            for trial in trials("compat", call, awaits):
                await cut(client, trial.places, late=trial.late)

    asyncio.run(main())


def test_release_that_never_arrived_is_over_and_carried_out_later(kit, key, proxy, tcp_valkey, connect):
    async def main(look):
        async with connect(proxy.url, socket_timeout=0.2, retry=Retry(NoBackoff(), 0)) as client:
            lock = AsyncLock(client, key, timeout=60)
            await lock.acquire()
            with proxy.fault("blackhole"), pytest.raises(redis.exceptions.TimeoutError):
                await lock.release()
            assert lock.local.token is None
            assert not await lock.owned()
            await _until(lambda: not look.exists(key))

    with tcp_valkey.client() as look:
        asyncio.run(main(look))
        look.delete(fence_key(key.encode()))


def test_attempt_whose_reply_is_lost_is_undone(kit, key, proxy, tcp_valkey, connect):
    async def main(look):
        async with connect(proxy.url, socket_timeout=0.2, retry=Retry(NoBackoff(), 0)) as client:
            async with AsyncLock(client, key, timeout=60):
                pass
            lock = AsyncLock(client, key, timeout=60)
            with proxy.fault("drop_replies"), pytest.raises(redis.exceptions.TimeoutError):
                await lock.acquire()
            assert look.exists(key)
            await _until(lambda: not look.exists(key))
            with pytest.raises(LockError):
                await lock.release()

    with tcp_valkey.client() as look:
        asyncio.run(main(look))
        look.delete(fence_key(key.encode()))


class Step:
    """A step that does not end by itself. It notes its beginning and its end."""

    def __init__(self):
        self.begun, self.events = asyncio.Event(), []

    async def arun(self, client):
        self.events.append("begun")
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.events.append("ended")


def test_run_that_starts_while_the_loop_cancels_its_tasks_ends_with_it(caplog):
    async def main():
        step = Step()

        def flow():
            yield step

        async def ends_late():
            try:
                await asyncio.Event().wait()
            finally:  # asyncio.run() has cancelled all tasks, and waits for this one
                AsyncRepeated(flow, None, after=0)
                await step.begun.wait()

        task = asyncio.create_task(ends_late())
        await asyncio.sleep(0)
        return step, task

    step, _ = asyncio.run(main())
    assert step.events == ["begun", "ended"]
    gc.collect()
    assert not caplog.records  # asyncio logs each task that is pending as its loop is closed


def test_no_run_starts_once_the_loop_has_ended_them():
    async def main():
        step = Step()

        def flow():
            yield step

        repeated = AsyncRepeated(flow, None, after=60)
        await asyncio.get_running_loop().shutdown_asyncgens()
        repeated._start()
        await asyncio.sleep(0)
        return step.events

    assert asyncio.run(main()) == []


class Failing:
    """A step that fails at first, with an error that is not of redis-py."""

    def __init__(self):
        self.runs, self.carried_out = 0, asyncio.Event()

    async def arun(self, client):
        self.runs += 1
        if self.runs == 1:
            raise RuntimeError("a subclass of the client failed")
        self.carried_out.set()


def test_run_that_fails_with_any_error_is_repeated_and_logged(monkeypatch, caplog):
    monkeypatch.setattr(compat, "RENEWAL_RETRY", 0.01)

    async def main():
        step = Failing()

        def flow():
            yield step

        AsyncRepeated(flow, None, after=0)
        await asyncio.wait_for(step.carried_out.wait(), 10)

    asyncio.run(main())
    assert caplog.messages == ["A lease was not renewed; retrying: a subclass of the client failed"]
