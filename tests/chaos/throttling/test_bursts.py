"""A burst of requests to a server with few connections to Redis: it is counted exactly, and nothing fails."""

import asyncio

import pytest

from tests.chaos.throttling.bursts import BURST, PATHS, burst, site, state, wrong

pytestmark = pytest.mark.once


@pytest.mark.parametrize("kind", PATHS)
def test_burst_is_counted_exactly(make_server, kind):
    server = make_server()
    with site(kind, server.url, connections=3, timeout=5) as port:
        for path in PATHS[kind]:
            server.flush()
            assert wrong(asyncio.run(burst(port, path)), state(port)) == []


@pytest.mark.parametrize("kind", PATHS)
def test_check_finds_a_pool_that_refuses_at_once(make_server, kind):
    server = make_server()
    with site(kind, server.url, connections=3, timeout=5, plant=True) as port:
        statuses = asyncio.run(burst(port, PATHS[kind][0]))
        assert wrong(statuses, state(port))
        assert sum(statuses.values()) == BURST
