"""A pool at its limit: callers stand in line, no connection gets lost or is used with a reply unread."""

import asyncio
import gc
import json
import subprocess
import sys
import threading
import time
import warnings
import weakref

import pytest

from redis_kit.core import connections
from redis_kit.core.client.pools import SPARE
from redis_kit.core.errors import PoolExhausted, RedisUnavailable
from redis_kit.locks import Lock
from redis_kit.queues import Queue
from tests.fixtures.servers import wait_for


def opened(kit):
    """Return how many connections of the kit the server has."""
    return len([one for one in kit.client.client_list() if one["lib-name"].startswith("redis-py")])


def breaker():
    (found,) = connections._breakers.values()
    return found


def hold(kit, count, seconds=5.0):
    """Keep so many connections busy on the server, from threads, until the returned function is called."""
    client, key = connections.client(), f"{kit.prefix}:held"
    threads = [threading.Thread(target=client.call, args=("BLPOP", key, seconds), daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    wait_for(lambda: len([one for one in kit.client.client_list() if "b" in one["flags"]]) >= count)

    def end():
        kit.client.rpush(key, *range(count))
        for thread in threads:
            thread.join(10)

    return end


def in_threads(count, call):
    """Call a function in so many threads at once, and return what it returned or raised."""
    outcomes, together = [], threading.Barrier(count)

    def run(number):
        together.wait()
        try:
            outcomes.append(call(number))
        except Exception as error:
            outcomes.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return outcomes


@pytest.fixture(params=["sync", "async"])
def at_once(request):
    """Make so many calls of one command at once, and return what came of each."""
    if request.param == "sync":
        return lambda count, *command: in_threads(count, lambda _: connections.client().call(*command))

    async def gathered(count, command):
        calls = [connections.aclient().call(*command) for _ in range(count)]
        return await asyncio.gather(*calls, return_exceptions=True)

    return lambda count, *command: asyncio.run(gathered(count, command))


@pytest.mark.parametrize("most", [2, 7])
def test_more_callers_than_connections_wait_for_their_turn(kit, at_once, most):
    kit.options(MAX_CONNECTIONS=most)
    before = opened(kit)
    counts = at_once(200, "INCR", f"{kit.prefix}:count")
    assert sorted(counts) == list(range(1, 201))
    assert opened(kit) - before <= most
    assert not breaker().failures


def test_limit_above_100_holds(kit, at_once):
    kit.options(MAX_CONNECTIONS=130, READ_TIMEOUT=10)
    kit.client.config_set("maxclients", 1000)
    before, ended, most = opened(kit), time.monotonic() + 8, []

    def serve():
        while not most or (max(most) < 130 and time.monotonic() < ended):
            most.append(opened(kit) - before)
            time.sleep(0.02)
        kit.client.lpush(f"{kit.prefix}:jobs", *[1] * 130)

    serving = threading.Thread(target=serve)
    serving.start()
    outcomes = at_once(130, "BLPOP", f"{kit.prefix}:jobs", 9)
    serving.join()
    assert [value for _, value in outcomes] == [b"1"] * 130
    assert max(most) == 130


def test_own_limit_of_a_url_does_not_hold(tcp_valkey, kit):
    kit.connect({"URL": f"{tcp_valkey.url}?max_connections=1"}, MAX_CONNECTIONS=5)
    assert in_threads(5, lambda _: connections.client().call("BLPOP", f"{kit.prefix}:nothing", 0.2)) == [None] * 5


@pytest.mark.usefixtures("single_connection")
def test_first_come_first_served(kit):
    kit.options(MAX_CONNECTIONS=1)
    served = []

    async def call(number):
        await connections.aclient().call("PING")
        served.append(number)

    async def main():
        await asyncio.gather(*map(call, range(100)))

    asyncio.run(main())
    assert served == list(range(100))
    served.clear()
    end = hold(kit, 1)
    pool = connections.client()._pool
    threads = []
    for number in range(20):
        threads.append(threading.Thread(target=lambda number=number: served.append((number, pool.take()))))
        threads[-1].start()
        wait_for(lambda number=number: len(pool._waiting) == number + 1)
    end()
    for number in range(20):
        wait_for(lambda number=number: len(served) == number + 1)
        assert served[number][0] == number
        pool.give(served[number][1])
    for thread in threads:
        thread.join(5)


@pytest.mark.usefixtures("single_connection")
def test_new_caller_does_not_overtake_waiters(kit):
    kit.options(MAX_CONNECTIONS=1)

    async def main():
        pool, order = connections.aclient()._pool, []
        first = await pool.take()
        waiting = asyncio.create_task(pool.take())
        await asyncio.sleep(0)
        pool.give(first)  # handed on at once, though the one who waits did not run yet
        late = asyncio.create_task(pool.take())
        waiting.add_done_callback(lambda _: order.append("waiting"))
        late.add_done_callback(lambda _: order.append("late"))
        pool.give(await waiting)
        pool.give(await late)
        assert order == ["waiting", "late"]

    asyncio.run(main())


def test_full_pool_is_one_clear_error_and_not_an_outage(kit):
    kit.options(MAX_CONNECTIONS=2, READ_TIMEOUT=10, POOL_TIMEOUT=0.1)
    end = hold(kit, 2, 20)
    for refused in (
        lambda: connections.client().call("PING"),
        lambda: Lock("a").acquire(blocking=False),
        lambda: Queue("a").put(1),
        lambda: connections.client().batch([("PING",)]),
    ):
        with pytest.raises(
            PoolExhausted, match=r"All 2 connections .* 1 call waits .*MAX_CONNECTIONS'\] limits .*docs"
        ):
            refused()
    assert not issubclass(PoolExhausted, RedisUnavailable)
    assert not breaker().failures
    end()
    assert connections.client().call("PING") == b"PONG"


@pytest.mark.usefixtures("single_connection")
def test_async_callers_get_the_same_error(kit):
    kit.options(MAX_CONNECTIONS=1, POOL_TIMEOUT=0.1)

    async def main():
        client = connections.aclient()
        taken = await client._pool.take()
        refused = await asyncio.gather(*[client.call("PING") for _ in range(3)], return_exceptions=True)
        assert [type(error) for error in refused] == [PoolExhausted] * 3
        client._pool.give(taken)
        assert await client.call("PING") == b"PONG"
        assert not client._pool._waiting

    asyncio.run(main())
    assert not breaker().failures


def test_cluster_nodes_let_their_callers_wait_too(cluster, settings, at_once):
    settings.REDIS_KIT = {
        "CONNECTIONS": {"default": cluster.connection},
        "MAX_CONNECTIONS": 2,
        "CONNECT_TIMEOUT": 2.0,
        "READ_TIMEOUT": 2.0,
    }
    cluster.flush()
    assert sorted(at_once(100, "INCR", "{counted}:a")) == list(range(1, 101))


def test_calls_that_block_leave_connections_to_others(kit, blocked):
    kit.options(MAX_CONNECTIONS=2 * SPARE)
    client, key, answers = connections.client(), f"{kit.prefix}:list", []
    pool = client._pool
    waiting = [
        threading.Thread(target=lambda: answers.append(client.block(5, "BLPOP", key, "5"))) for _ in range(SPARE + 2)
    ]
    for thread in waiting:
        thread.start()
    wait_for(lambda: len(blocked()) == SPARE and len(pool._waiting_to_block) == 2)
    assert client.call("PING") == b"PONG"
    client.call("RPUSH", key, *range(SPARE + 2))  # those who are woken make room for those who stand in line
    for thread in waiting:
        thread.join(10)
    assert len(answers) == SPARE + 2


def test_waiters_get_an_error_when_the_server_is_unavailable(own_kit):
    own_kit.options(MAX_CONNECTIONS=5)
    connections.client().call("PING")
    own_kit.server.freeze()
    outcomes = in_threads(60, lambda _: connections.client().call("PING"))
    own_kit.server.thaw()
    assert {type(one) for one in outcomes} == {RedisUnavailable}
    assert breaker().is_open


def test_connection_that_can_not_be_opened_is_not_counted(kit):
    kit.options(MAX_CONNECTIONS=2)
    pool = connections.client()._pool
    make = pool.factory.make

    def broken():
        raise ValueError("no such option")

    for _ in range(5):
        pool.factory = pool.factory._replace(make=broken)
        with pytest.raises(ValueError, match="no such option"):
            pool.take()
    pool.factory = pool.factory._replace(make=make)
    taken = [pool.take(), pool.take()]
    assert len(pool._made) == 2
    for connection in taken:
        pool.give(connection)


@pytest.mark.usefixtures("single_connection")
def test_connection_that_is_never_returned_is_not_counted(kit):
    kit.options(MAX_CONNECTIONS=1)
    gc.disable()  # nothing but the last reference is needed
    try:
        for _ in range(5):
            lost = weakref.ref(connections.client()._pool.take())
            assert lost() is None
        assert connections.client().call("PING") == b"PONG"
    finally:
        gc.enable()


class Interrupted(BaseException):
    """Raised in the middle of something."""


@pytest.mark.once
def test_interruptions_at_any_point_lose_no_connection_and_mix_no_replies(kit):
    command = [sys.executable, "-m", "tests.core.support.interruptions", kit.url, "3"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    seen = json.loads(done.stdout)
    assert seen["interrupted"] > 50
    assert seen["right"] > 100
    assert done.returncode == 0, seen


def test_cancellations_at_any_point_lose_no_connection_and_mix_no_replies(kit):
    kit.options(MAX_CONNECTIONS=3)

    async def main():
        client = connections.aclient()

        async def echo(number):
            assert await client.call("ECHO", number) == b"%d" % number

        for turn in range(150):
            tasks = [asyncio.create_task(echo(number)) for number in range(12)]
            for _ in range(turn % 9):
                await asyncio.sleep(0)
            for task in tasks[turn % 3 :: 2]:
                task.cancel()
                if turn % 2:
                    await asyncio.sleep(0)
                    task.cancel()
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
            assert {type(one) for one in outcomes} <= {type(None), asyncio.CancelledError}
            del tasks, outcomes
        pool = client._pool
        assert len(pool._made) == len(pool._idle) <= 3
        assert not pool._waiting

    asyncio.run(main())


def test_half_open_connection_is_not_used_again(kit, monkeypatch):
    pool = connections.client()._pool
    make, opened = pool.factory.make, []

    def interrupted():
        connection = make()
        opened.append(connection)
        monkeypatch.setattr(connection, "on_connect_check_health", sent_and_interrupted)
        return connection

    def sent_and_interrupted(**_):
        opened[-1].send_command("ECHO", "unread", check_health=False)
        raise Interrupted

    pool.factory = pool.factory._replace(make=interrupted)
    with pytest.raises(Interrupted):
        pool.take()
    pool.factory = pool.factory._replace(make=make)
    assert connections.client().call("ECHO", "mine") == b"mine"
    assert opened[0]._sock is None


def test_connection_returned_to_a_closed_async_pool_is_closed(kit):
    async def main():
        pool = connections.aclient()._pool
        await connections.aclient().call("PING")
        taken = await pool.take()
        before = opened(kit)
        pool.close()
        pool.give(taken)
        assert taken._writer is None
        assert not pool._made
        await asyncio.sleep(0)  # in which the loop closes it
        wait_for(lambda: opened(kit) < before)

    with warnings.catch_warnings():
        warnings.simplefilter("error")  # as of a coroutine that nobody awaits
        asyncio.run(main())
        gc.collect()
