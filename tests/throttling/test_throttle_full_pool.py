"""A full pool is not an outage: a throttle that can't ask counts locally, whatever its policy."""

import asyncio
import logging
import threading

import pytest

from redis_kit.core import connections, primitive
from redis_kit.core.logs.rate_limit import LogRateLimit
from redis_kit.core.signals import failure_policy_applied
from redis_kit.throttling import Throttle, hit_all
from tests.fixtures.servers import wait_for


@pytest.fixture
def full(single_connection, kit, monkeypatch):
    """All connections are in use: those of threads, and those of the loop that ``take`` runs in."""
    monkeypatch.setattr(primitive, "_log_limit", LogRateLimit())
    monkeypatch.setattr(primitive, "_unavailable", set())
    kit.options(MAX_CONNECTIONS=1, POOL_TIMEOUT=0.05)
    pool = connections.client()._pool
    taken = pool.take()
    yield kit
    pool.give(taken)


async def all_taken():
    return await connections.aclient()._pool.take()


@pytest.mark.parametrize("policy", ["open", "closed", "local"])
def test_throttle_decides_from_its_local_bucket(full, caplog, policy):
    throttle, applied = Throttle("a", rates="3/m", on_failure=policy), []
    failure_policy_applied.connect(lambda **what: applied.append(what), weak=False, dispatch_uid="full")
    with caplog.at_level(logging.WARNING, "redis_kit"):
        decisions = [throttle.hit("me") for _ in range(5)]
    failure_policy_applied.disconnect(dispatch_uid="full")
    assert [decision.allowed for decision in decisions] == [True] * 3 + [False] * 2
    assert {decision.reason for decision in decisions} == {"local"}
    (line,) = caplog.messages
    assert "MAX_CONNECTIONS" in line
    assert [what["policy"] for what in applied] == ["local"]
    assert not primitive._unavailable


def test_async_throttle_decides_from_it_too(full):
    throttle = Throttle("a", rates="3/m")

    async def main():
        taken = await all_taken()
        decisions = [await throttle.ahit("me") for _ in range(5)]
        assert (await throttle.apeek("me")).reason == "local"
        connections.aclient()._pool.give(taken)
        return decisions

    assert [decision.allowed for decision in asyncio.run(main())] == [True] * 3 + [False] * 2


def test_several_throttles_together_do(full):
    throttles = [Throttle("a", rates="5/m"), Throttle("b", rates="2/m")]
    outcomes = [[one.allowed for one in hit_all([(throttle, "me") for throttle in throttles])] for _ in range(3)]
    assert outcomes == [[True, True], [True, True], [True, False]]


@pytest.mark.usefixtures("single_connection")
def test_settlement_is_left_undone(kit):
    kit.options(MAX_CONNECTIONS=1, POOL_TIMEOUT=0.05)
    throttle = Throttle("a", rates="10/m")
    reservation = throttle.reserve("me", cost=5)
    taken = connections.client()._pool.take()
    reservation.settle(1)
    connections.client()._pool.give(taken)
    assert throttle.peek("me").remaining == 5


def test_crowd_waits_and_is_counted_exactly(kit):
    kit.options(MAX_CONNECTIONS=2)
    throttle, decisions = Throttle("a", rates="10/m"), []
    threads = [threading.Thread(target=lambda: decisions.append(throttle.hit("me"))) for _ in range(100)]
    for thread in threads:
        thread.start()
    wait_for(lambda: len(decisions) == 100)
    for thread in threads:
        thread.join()
    assert sum(decision.allowed for decision in decisions) == 10
    assert {decision.reason for decision in decisions} == {""}
