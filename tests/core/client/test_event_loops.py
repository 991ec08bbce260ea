"""Event loops that have ended leave neither memory nor descriptors behind, whatever ended them."""

import asyncio
import gc
import json
import subprocess
import threading

import pytest

from redis_kit.core import connections
from tests.core.support.event_loops import KINDS
from tests.fixtures.fork_server import start_python
from tests.fixtures.servers import wait_for


def many(url, *arguments):
    command = ["-m", "tests.core.support.event_loops", url, "120", *arguments]
    done = start_python(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    output, errors = done.communicate(timeout=100)
    assert not errors
    return done.returncode, json.loads(output)


@pytest.mark.once
def test_event_loops_leave_nothing_behind(kit):
    code, grown = many(kit.url)
    assert grown.keys() == set(KINDS)
    assert all(one["loops"] <= 1 and one["clients"] <= 1 and one["descriptors"] <= 2 for one in grown.values())
    assert code == 0, grown


@pytest.mark.once
def test_check_finds_loops_that_are_kept(kit):
    code, grown = many(kit.url, "kept")
    assert code == 1
    assert all(one["loops"] == 60 for one in grown.values())


def clients(kit):
    return len([one for one in kit.client.client_list() if one["lib-name"].startswith("redis-py")])


async def ping():
    assert await connections.aclient().call("PING") == b"PONG"


@pytest.mark.filterwarnings("ignore:unclosed transport:ResourceWarning")  # the loop was closed before its transport
def test_next_loop_closes_what_one_left_that_was_closed_too_early(kit):
    connections.client()
    before = clients(kit)
    loop = asyncio.new_event_loop()
    loop.run_until_complete(ping())
    loop.close()
    assert clients(kit) == before + 1
    asyncio.run(ping())
    wait_for(lambda: clients(kit) == before)
    assert loop not in connections._loops
    del loop
    gc.collect()


def test_loops_of_several_threads_have_their_own_clients(kit):
    found, errors = [], []

    async def use():
        found.append(connections.aclient())
        for _ in range(20):
            await ping()
        assert connections.aclient() is found[-1] or connections.aclient() in found

    def run():
        try:
            asyncio.run(use())
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert errors == []
    assert len(set(map(id, found))) == 8


def test_changed_settings_reach_a_loop_that_runs(kit, tcp_valkey):
    before = clients(kit)

    async def main():
        await ping()
        await connections.aclient("default", "worker").call("PING")
        connections.close()
        await ping()
        for _ in range(3):
            await asyncio.sleep(0)
        await ping()
        wait_for(lambda: clients(kit) == before + 1)

    asyncio.run(main())
    wait_for(lambda: clients(kit) == before)
