"""A client that stalls does not take its server for dead; a server that is silent is found out in time."""

import asyncio
import ctypes
import subprocess
import sys
import threading
import time

import pytest

from redis_kit.core import connections
from redis_kit.core.client.pools import AT_ONCE
from redis_kit.core.client.wire import Deadline
from redis_kit.core.errors import RedisUnavailable
from tests.core.client.test_pools import at_once, breaker

pytestmark = pytest.mark.alone(6)
_ = at_once  # a fixture

LIMIT = 0.25
block = time.sleep  # in an event loop, on purpose


def test_event_loop_that_was_blocked_gets_the_replies(own_kit):
    async def main():
        client = connections.aclient()
        await asyncio.gather(*[client.call("PING") for _ in range(10)])
        calls = [asyncio.create_task(client.call("ECHO", number)) for number in range(10)]
        await asyncio.sleep(0)
        block(3 * LIMIT)  # as a view may
        return await asyncio.gather(*calls)

    assert asyncio.run(main()) == [b"%d" % number for number in range(10)]
    assert not breaker().failures


def test_event_loop_that_is_busy_all_the_time_can_start_cold(own_kit):
    async def work(over):
        while not over.is_set():
            block(0.04)
            await asyncio.sleep(0)

    async def main():
        over = asyncio.Event()
        busy = asyncio.create_task(work(over))
        replies = await asyncio.gather(*[connections.aclient().call("ECHO", number) for number in range(5)])
        over.set()
        await busy
        return replies

    assert asyncio.run(main()) == [b"%d" % number for number in range(5)]
    assert not breaker().failures


def test_batch_and_waiting_calls_are_not_cut_short_by_their_loop_either(own_kit):
    async def main():
        client = connections.aclient()
        await asyncio.gather(*[client.call("PING") for _ in range(2)])
        batch = asyncio.create_task(client.batch([("ECHO", 1), ("ECHO", 2)]))
        waiting = asyncio.create_task(client.block(0.1, "BLPOP", "nothing", "0.1"))
        await asyncio.sleep(0)
        block(3 * LIMIT)
        assert await batch == [b"1", b"2"]
        assert await waiting is None

    asyncio.run(main())
    assert not breaker().failures


def test_thread_that_could_not_run_for_a_while_gets_the_reply(own_kit):
    client, replies = connections.client(), []
    client.call("PING")
    asking = threading.Thread(target=lambda: replies.append(client.call("ECHO", "late")))
    own_kit.server.freeze()
    program = f"import os, time; time.sleep(0.5); [os.kill(pid, 18) for pid in {own_kit.server.pids}]"
    thaw = subprocess.Popen([sys.executable, "-c", program])
    asking.start()
    ctypes.PyDLL(None).usleep(900_000)  # nothing else runs in this process: its time limit is over long since
    thaw.wait(10)
    asking.join(10)
    assert replies == [b"late"]
    assert not breaker().failures


def test_silent_server_is_detected_in_time(own_kit):
    async def main():
        client = connections.aclient()
        await client.call("PING")
        own_kit.server.freeze()
        began = time.monotonic()
        with pytest.raises(RedisUnavailable) as caught:
            await client.call("PING")
        own_kit.server.thaw()
        assert caught.value.indeterminate
        assert LIMIT <= time.monotonic() - began < 10  # without the limit it waits until the test is killed

    asyncio.run(main())
    assert len(breaker().failures) == 1


def test_cold_start_sets_up_few_connections_at_a_time(kit, at_once, monkeypatch):
    from redis_kit.core.client.pools import _Shared

    seen, free = [], _Shared._free

    def counted(self):
        found = free(self)
        standing = len(self._made) - len(self._new)
        seen.append(len(self._new) - max(AT_ONCE, standing))
        return found

    monkeypatch.setattr(_Shared, "_free", counted)
    assert sorted(at_once(200, "INCR", f"{kit.prefix}:count")) == list(range(1, 201))
    assert max(seen) <= 0
    assert not breaker().failures


def test_deadline_is_one_for_cancellations_from_outside_too():
    async def waits(seconds):
        async with Deadline(seconds):
            await asyncio.Event().wait()

    async def main():
        with pytest.raises(TimeoutError):
            await waits(0.01)
        task = asyncio.create_task(waits(10))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(TimeoutError):  # the outer one, not the inner
            async with asyncio.timeout(0.01):
                await waits(10)
        task = asyncio.current_task()
        assert task.cancelling() == 0

    asyncio.run(main())


def test_deadline_of_a_loop_that_lags_for_ever_ends_all_the_same():
    async def lag():
        while True:
            block(0.02)
            await asyncio.sleep(0)

    async def main():
        lagging, began = asyncio.create_task(lag()), time.monotonic()
        with pytest.raises(TimeoutError):
            async with Deadline(0.05):
                await asyncio.Event().wait()
        lagging.cancel()
        assert time.monotonic() - began >= 0.15

    asyncio.run(main())
