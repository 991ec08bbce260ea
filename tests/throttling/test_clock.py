"""The server's clock is put forward or back while callers are limited; those of clients do not matter."""

import contextlib
import time

import pytest

from redis_kit.throttling import Ban, Throttle
from redis_kit.throttling.strategies import STRATEGIES
from tests.fixtures.kit import Kit

pytestmark = pytest.mark.once

AHEAD, BACK = 7200, -7200  # seconds


@pytest.fixture(autouse=True)
def kit(clock_kit):
    """The kit on a server whose clock is set by a file; nothing is remembered in this process."""
    clock_kit.options(THROTTLING={"REMEMBER": 0})
    return clock_kit


def admitted(limit, caller="joe"):
    return sum(limit.hit(caller).allowed for _ in range(25))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("rates", ["10/h", "10/h; 50/d"])
def test_clock_set_forward_allows_one_more_window_and_correcting_it_none(jump, strategy, rates):
    limit = Throttle("x", rates, strategy=strategy)
    assert admitted(limit) == 10
    jump(AHEAD)
    assert admitted(limit) == 10
    jump(0)
    assert admitted(limit) == 0


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_clock_put_back_gives_nothing_back_and_locks_nobody_out(jump, strategy):
    limit = Throttle("x", "10/h", strategy=strategy)
    assert admitted(limit) == 10
    jump(BACK)
    assert admitted(limit) == 0
    refused = limit.hit("joe")
    assert 0 < refused.retry_after <= 3600 * (2 if strategy == "sliding_counter" else 1)
    assert admitted(limit, "ann") == 10


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_retry_after_is_exact_after_the_clock_was_set_back(jump, strategy):
    limit = Throttle("x", [(3, 0.3)], strategy=strategy)
    limit.hit("joe", cost=3)
    jump(BACK)
    began = time.monotonic()
    assert limit.acquire("joe", timeout=60)
    assert time.monotonic() - began < 30


def test_ban_lasts_as_long_as_it_said_where_the_clock_goes_on(jump):
    limit = Throttle("x", "1/h", ban=Ban(1, 60, 600))
    limit.hit("joe")
    assert limit.hit("joe").reason == "banned"
    jump(AHEAD)
    assert limit.hit("joe")


def test_reservation_of_before_a_jump_gives_back_no_more_than_was_taken(jump):
    for strategy in STRATEGIES:
        limit = Throttle("x", "10/h", strategy=strategy)
        reserved = limit.reserve("joe", cost=10)
        jump(AHEAD)
        assert admitted(limit) == 10
        reserved.refund()
        assert admitted(limit) <= (10 if strategy == "sliding_counter" else 0)
        jump(0)


@pytest.mark.parametrize("skew", [-86_400, 3600])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_clock_of_a_client_does_not_matter(valkey, settings, monkeypatch, strategy, skew):
    with contextlib.closing(Kit(valkey, settings)) as kit:
        kit.options(THROTTLING={"REMEMBER": 0})
        limit = Throttle("x", "10/d", strategy=strategy)
        assert limit.hit("joe", cost=9)
        right = time.time
        monkeypatch.setattr(time, "time", lambda: right() + skew)
        monkeypatch.setattr(time, "time_ns", lambda: int((right() + skew) * 10**9))
        assert admitted(limit) == 1
        assert limit.hit("joe").retry_after <= 2 * 86_400
