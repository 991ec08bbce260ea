"""The memory of an idle identity: bytes on the server, and bytes in a process."""

import tracemalloc

import pytest

from redis_kit.throttling import Throttle
from redis_kit.throttling.engine import memory
from tests.fixtures.servers import wait_for

pytestmark = pytest.mark.once
MOST = 120  # bytes


@pytest.fixture
def own_prefix(make_server, settings):
    server = make_server()
    settings.REDIS_KIT = {"PREFIX": "rk", "CONNECTIONS": {"default": server.connection}}
    with server.client() as client:
        yield client


def test_identity_of_a_bucket_takes_at_most_120_bytes_on_the_server(own_prefix):
    limit = Throttle("login", "5/m", clock=lambda: 1_760_000_000.0)  # which keeps them for a day

    def used():
        """Return the bytes in use, but for connections. With each call the server enlarges its table."""
        for caller in range(1000):
            own_prefix.exists(limit.keys(str(caller)).state)
        # Not "mem_clients_normal", which is up to a second old: at the start it has buffers that are smaller by now.
        of_clients = sum(int(client["tot-mem"]) for client in own_prefix.client_list())
        return own_prefix.info("memory")["used_memory"] - of_clients

    limit.hit("warm")
    used(), own_prefix.dbsize(), own_prefix.memory_usage("")  # each command's first call takes some memory for good
    before, number = used(), 12_000
    for caller in range(number):
        limit.hit(caller)
    assert number < own_prefix.dbsize() <= number + 3  # one or two keys of statistics
    assert own_prefix.memory_usage(limit.keys("1").state) <= MOST
    wait_for(lambda: (used() - before) / number <= MOST)


@pytest.mark.parametrize("refused", [False, True])
def test_process_remembers_a_bounded_number_of_identities(kit, monkeypatch, refused):
    monkeypatch.setattr(memory, "LIMIT", 200)
    monkeypatch.setattr(memory, "IDENTITIES", 200)
    limit = Throttle("x", "1/h" if refused else "9/h")

    def callers(first, last):
        for caller in range(first, last):
            limit.hit(f"caller-{caller}")
            limit.hit(f"caller-{caller}")

    callers(0, 400)
    tracemalloc.start()
    callers(400, 800)
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(memory._refusals) <= 200
    assert grown < 500_000
