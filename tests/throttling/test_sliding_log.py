"""The log: never more than the limit in any stretch, and small."""

import time

import pytest

from redis_kit.throttling import Rate, Throttle
from tests.throttling.support.bounds import excess
from tests.throttling.support.identity import Identity


def test_limit_is_never_exceeded_in_any_stretch(kit):
    rates = [Rate(7, 0.02), Rate(40, 0.2)]
    identity, stamps = Identity(rates, strategy="sliding_log"), []
    end = time.monotonic() + 0.8
    while time.monotonic() < end or len(stamps) <= 100:
        outcome = identity.ask()
        stamps += [outcome.stamp] if outcome.decision else []
    for rate in rates:
        period = round(rate.period * 1_000_000)
        assert excess("sliding_log", stamps, rate.limit, period) == 0
        assert all(sum(start <= stamp < start + period for stamp in stamps) <= rate.limit for start in stamps)


def test_largest_log_is_exact(kit):
    now = 1_760_000_000.0
    limit = Throttle("x", "10000/h", strategy="sliding_log", clock=lambda: now)
    for _ in range(100):
        assert limit.hit("joe", cost=99)
        now += 1
    assert limit.hit("joe", cost=100).remaining == 0
    now += 3499
    assert limit.peek("joe", cost=99).allowed is False
    now += 1
    assert limit.hit("joe", cost=99).remaining == 0


@pytest.mark.parametrize("limit", [1, 50, 1000])
def test_log_takes_no_more_than_a_quarter_above_its_limit(kit, limit):
    now = 1_760_000_000.0
    identity = Identity([Rate(limit, 1)], strategy="sliding_log", clock=lambda: now)
    for _ in range(12):
        assert identity.ask(limit).decision
        now += 1
    assert kit.client.strlen(identity.state) <= 8 * (limit + max(16, limit / 4))
    assert not kit.client.strlen(identity.state) % 8


@pytest.mark.parametrize("jump", [1, 3600, 10**9])
def test_clock_that_went_back_takes_the_log_with_it(kit, jump):
    now = 1_760_000_000.0
    limit = Throttle("x", "10/h", strategy="sliding_log", clock=lambda: now)
    for _ in range(10):
        assert limit.hit("joe")
        now += 60
    now -= jump
    refused = limit.hit("joe")
    assert not refused
    assert 0 < refused.retry_after <= 3600
    assert refused.reset_after <= 3600
    now += refused.retry_after
    assert limit.hit("joe")
    assert not limit.hit("joe")


def test_clock_that_jumps_ahead_and_back_allows_one_more_limit(kit):
    now = 1_760_000_000.0
    limit = Throttle("x", "10/h", strategy="sliding_log", clock=lambda: now)
    assert sum(bool(limit.hit("joe")) for _ in range(20)) == 10
    now += 86_400
    assert sum(bool(limit.hit("joe")) for _ in range(20)) == 10
    now -= 86_400
    assert sum(bool(limit.hit("joe")) for _ in range(20)) == 0
